// What came in, DELAY cycles later, through block RAM. 3 to 17 cycles.
(* keep_hierarchy *)
module delay_line #(
    parameter int WIDTH = 128,
    parameter int DELAY = 12
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  logic [WIDTH-1:0] memory[16];
  logic [3:0]       write_at, read_at;

  always_ff @(posedge clk) begin
    memory[write_at] <= in;
    out <= memory[read_at];
    write_at <= rst ? 4'(DELAY - 1) : write_at + 4'd1;
    read_at  <= rst ? 4'd0 : read_at + 4'd1;
  end
endmodule
