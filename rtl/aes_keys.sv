// The key schedule of AES-128: a round key per cycle after `load`. `keys` holds all eleven, 0 lowest.
module aes_keys (
    input  logic          clk,
    input  logic          rst,
    input  logic          load,
    input  logic [127:0]  key,
    output logic          busy,
    output logic [1407:0] keys
);
  localparam logic [2047:0] SBOX = sbox_pkg::SBOX;

  logic [3:0]  round;  // of the key that is made next
  logic [7:0]  constant;
  logic [31:0] w0, w1, w2, w3, t, n0, n1, n2, n3;
  assign {w3, w2, w1, w0} = keys[1407:1280];
  assign t  = {SBOX[{w3[7:0], 3'b0}+:8], SBOX[{w3[31:24], 3'b0}+:8], SBOX[{w3[23:16], 3'b0}+:8],
               SBOX[{w3[15:8], 3'b0}+:8] ^ constant};
  assign n0 = w0 ^ t;
  assign n1 = w1 ^ n0;
  assign n2 = w2 ^ n1;
  assign n3 = w3 ^ n2;

  assign busy = round != 0;
  always_ff @(posedge clk)
    if (rst) round <= '0;
    else if (load) begin
      round    <= 4'd1;
      constant <= 8'h01;
      keys     <= {key, 1280'b0};
    end else if (busy) begin
      // Keys move down as new ones enter on top.
      keys     <= {n3, n2, n1, n0, keys[1407:128]};
      constant <= {constant[6:0], 1'b0} ^ (constant[7] ? 8'h1b : 8'h00);
      round    <= round == 4'd10 ? '0 : round + 4'd1;
    end
endmodule
