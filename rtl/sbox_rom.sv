// The AES S-box and its double, {2 S(x), S(x)}, as a read-only memory with two ports: one M20K block of the target
// serves both. With the double at hand a bit of MixColumns and of the round key is one exclusive or of six bits: one LUT.
// A memory and not logic, since a lane has 160 S-boxes: 6,400 LUTs as logic.
(* keep_hierarchy *)
module sbox_rom (
    input  logic        clk,
    input  logic        enable,
    input  logic [7:0]  a,
    input  logic [7:0]  b,
    output logic [15:0] qa,
    output logic [15:0] qb
);
  localparam logic [2047:0] SBOX = sbox_pkg::SBOX;

  logic [15:0] rom[256];
  logic [7:0]  s;
  initial
    for (int i = 0; i < 256; i++) begin
      s = SBOX[8*i+:8];
      rom[i] = {s[6:0], 1'b0, s} ^ (s[7] ? 16'h1b00 : 16'h0000);
    end

  always_ff @(posedge clk)
    if (enable) begin
      qa <= rom[a];
      qb <= rom[b];
    end
endmodule
