// A first-in-first-out buffer between valid/ready streams, in block RAM. What is written shows two cycles later.
(* keep_hierarchy *)
module stream_fifo #(
    parameter int WIDTH = 128,
    parameter int LOG_DEPTH = 6
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               push,   // the writer sees to it that there is room
    input  logic [WIDTH-1:0]   in,
    output logic [LOG_DEPTH:0] used,
    output logic               valid,
    input  logic               ready,
    output logic [WIDTH-1:0]   out
);
  logic [WIDTH-1:0]     memory[1<<LOG_DEPTH];
  logic [LOG_DEPTH-1:0] write_at, read_at;
  logic [LOG_DEPTH:0]   stored; // in memory, without what shows
  logic                 take;

  assign take = stored != 0 && (!valid || ready);
  assign used = stored + {{LOG_DEPTH{1'b0}}, valid};
  always_ff @(posedge clk) begin
    if (push) memory[write_at] <= in;
    if (take) out <= memory[read_at];
    if (rst) {write_at, read_at, stored, valid} <= '0;
    else begin
      if (push) write_at <= write_at + 1'b1;
      if (take) read_at <= read_at + 1'b1;
      stored <= stored + {{LOG_DEPTH{1'b0}}, push} - {{LOG_DEPTH{1'b0}}, take};
      valid  <= take || (valid && !ready);
    end
  end
endmodule
