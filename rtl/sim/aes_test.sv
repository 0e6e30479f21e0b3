// A key schedule and a lane, for the test.
module aes_test (
    input  logic         clk,
    input  logic         rst,
    input  logic         load,
    input  logic [127:0] key,
    output logic         busy,
    input  logic         enable,
    input  logic [127:0] x,
    output logic [127:0] y
);
  logic [1407:0] keys;
  aes_keys schedule (.clk, .rst, .load, .key, .busy, .keys);
  aes_lane lane (.clk, .enable, .x, .keys, .y);
endmodule
