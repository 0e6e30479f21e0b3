// Products in GF(2^128) modulo x^128 + x^7 + x^2 + x + 1, bit i the coefficient of x^i. One per cycle, three cycles after
// the operands: 27 products of 16 bits (three levels of Karatsuba), their recombination, the reduction. Of the last one
// only the sum is registered by the user: `y` is combinational in the registers of the second cycle.
(* keep_hierarchy *)
module gf_mul (
    input  logic         clk,
    input  logic [127:0] a,
    input  logic [127:0] b,
    output logic [127:0] y
);
  // The nine 32-bit operands of two levels: low, high, sum, each again low, high, sum.
  function automatic logic [287:0] split(input logic [127:0] x);
    logic [191:0] once;
    once = {x[63:0] ^ x[127:64], x[127:64], x[63:0]};
    for (int i = 0; i < 3; i++)
    split[96*i+:96] = {once[64*i+:32] ^ once[64*i+32+:32], once[64*i+32+:32], once[64*i+:32]};
  endfunction

  function automatic logic [30:0] mul16(input logic [15:0] x, input logic [15:0] z);
    mul16 = '0;
    for (int i = 0; i < 16; i++) mul16 ^= {15'b0, x & {16{z[i]}}} << i;
  endfunction

  logic [287:0] sa, sb;
  assign sa = split(a);
  assign sb = split(b);

  logic [30:0] low[9], high[9], both[9];
  always_ff @(posedge clk)
    for (int i = 0; i < 9; i++) begin
      low[i]  <= mul16(sa[32*i+:16], sb[32*i+:16]);
      high[i] <= mul16(sa[32*i+16+:16], sb[32*i+16+:16]);
      both[i] <= mul16(sa[32*i+:16] ^ sa[32*i+16+:16], sb[32*i+:16] ^ sb[32*i+16+:16]);
    end

  logic [62:0]  p32[9];
  logic [126:0] p64[3];
  logic [254:0] full, wide;
  always_comb begin
    for (int i = 0; i < 9; i++)
    p32[i] = {high[i], 32'b0} ^ {16'b0, both[i] ^ low[i] ^ high[i], 16'b0} ^ {32'b0, low[i]};
    for (int i = 0; i < 3; i++)
    p64[i] = {p32[3*i+1], 64'b0} ^ {32'b0, p32[3*i+2] ^ p32[3*i] ^ p32[3*i+1], 32'b0} ^ {64'b0, p32[3*i]};
    full = {p64[1], 128'b0} ^ {64'b0, p64[2] ^ p64[0] ^ p64[1], 64'b0} ^ {128'b0, p64[0]};
  end
  always_ff @(posedge clk) wide <= full;

  // x^128 = x^7 + x^2 + x + 1, and once more for what that lifts over the top.
  logic [126:0] up;
  logic [5:0]   over;
  assign up   = wide[254:128];
  assign over = up[126:121] ^ {5'b0, up[126]};
  assign y = wide[127:0] ^ {1'b0, up} ^ {up, 1'b0} ^ {up[125:0], 2'b0} ^ {up[120:0], 7'b0}
           ^ {122'b0, over} ^ {121'b0, over, 1'b0} ^ {120'b0, over, 2'b0} ^ {115'b0, over, 7'b0};
endmodule
