// Two registers between valid/ready streams: no path runs through from `ready` to `ready`.
module stream_skid (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [127:0] in,
    output logic         valid,
    input  logic         ready,
    output logic [127:0] out
);
  logic         spare_valid;
  logic [127:0] spare;

  assign in_ready = !spare_valid;
  always_ff @(posedge clk) begin
    if (!valid || ready) out <= spare_valid ? spare : in;
    if (in_ready) spare <= in;
    if (rst) {valid, spare_valid} <= '0;
    else if (!valid || ready) begin
      valid <= spare_valid || in_valid;
      spare_valid <= 1'b0;
    end else spare_valid <= spare_valid || in_valid;
  end
endmodule
