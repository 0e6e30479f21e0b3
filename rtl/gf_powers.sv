// The elements at which tags are evaluated, by part, and their powers up to the fourth, made with a borrowed multiplier.
module gf_powers (
    input  logic         clk,
    input  logic         rst,
    input  logic         load,
    input  logic [1:0]   load_part,
    input  logic [127:0] element,
    output logic         busy,
    output logic         borrow,
    output logic [127:0] borrow_a,
    output logic [127:0] borrow_b,
    input  logic [127:0] product,
    // Two readers: the part and the exponent, 0 standing for 4.
    input  logic [1:0]   part_a,
    input  logic [1:0]   part_c,
    input  logic [2:0]   exponent_a,
    input  logic [2:0]   exponent_c,
    output logic [127:0] power_a,
    output logic [127:0] power_c
);
  logic [127:0] powers[16]; // part, exponent modulo 4
  logic [1:0]   part, exponent;
  logic [2:0]   step;

  assign power_a  = powers[{part_a, exponent_a[1:0]}];
  assign power_c  = powers[{part_c, exponent_c[1:0]}];
  assign borrow   = busy;
  assign borrow_a = powers[{part, exponent}];
  assign borrow_b = powers[{part, 2'd1}];
  always_ff @(posedge clk)
    if (rst) busy <= 1'b0;
    else if (load) begin
      powers[{load_part, 2'd1}] <= element;
      {part, exponent, step, busy} <= {load_part, 2'd1, 3'd0, 1'b1};
    end else if (busy) begin
      step <= step + 3'd1;
      if (step == 3'd4) begin
        powers[{part, exponent + 2'd1}] <= product;
        exponent <= exponent + 2'd1;
        step <= 3'd0;
        busy <= exponent != 2'd3;
      end
    end

  logic unused;
  assign unused = ^{exponent_a[2], exponent_c[2]};
endmodule
