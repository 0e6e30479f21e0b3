// AES-128, one block per cycle, 21 cycles from block to result: two per round, a memory access and a LUT. Round keys stand
// on `keys`, 0 lowest, and do not change while blocks are in flight. Zero comes out where nothing went in, so that what
// adds the result needs no gate. Byte 0 of FIPS 197 is the lowest.
(* keep_hierarchy *)
module aes_lane (
    input  logic          clk,
    input  logic          enable,
    input  logic [127:0]  x,
    input  logic [1407:0] keys,
    output logic [127:0]  y
);
  logic [127:0] state [11];
  logic [10:0]  there;  // state[r] holds a block
  logic [9:0]   looked; // the memories of round r + 1 do

  always_ff @(posedge clk) begin
    there  <= {looked, enable};
    looked <= there[9:0];
    if (enable) state[0] <= x ^ keys[127:0];
  end

  for (genvar r = 1; r <= 10; r++) begin : g_round
    logic [127:0] from;   // ShiftRows of the state
    logic [127:0] s, d, next;
    assign from = state[r-1];
    for (genvar i = 0; i < 16; i += 2) begin : g_pair
      // Byte i of the shifted state is in row i mod 4, column i div 4.
      localparam int A = (i + 4 * (i % 4)) % 16;
      localparam int B = (i + 1 + 4 * ((i + 1) % 4)) % 16;
      sbox_rom boxes (
          .clk,
          .enable(there[r-1]),
          .a(from[8*A+:8]),
          .b(from[8*B+:8]),
          .qa({d[8*i+:8], s[8*i+:8]}),
          .qb({d[8*i+8+:8], s[8*i+8+:8]})
      );
    end
    if (r < 10) begin : g_mix
      for (genvar i = 0; i < 16; i++) begin : g_byte
        // 2 a + 3 b + c + d of the column, from this row on downwards.
        localparam int B = i / 4 * 4 + (i + 1) % 4;
        localparam int C = i / 4 * 4 + (i + 2) % 4;
        localparam int D = i / 4 * 4 + (i + 3) % 4;
        assign next[8*i+:8] = d[8*i+:8] ^ d[8*B+:8] ^ s[8*B+:8] ^ s[8*C+:8] ^ s[8*D+:8];
      end
      always_ff @(posedge clk) if (looked[r-1]) state[r] <= next ^ keys[128*r+:128];
    end else begin : g_last
      assign next = s;
      always_ff @(posedge clk) state[r] <= looked[r-1] ? next ^ keys[128*r+:128] : '0;
      logic unused;
      assign unused = ^d;
    end
  end
  assign y = state[10];

  logic unused;
  assign unused = there[10];
endmodule
