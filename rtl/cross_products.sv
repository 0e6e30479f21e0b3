// The local products of a seat, one block per cycle, summed over the terms of dot products:
//   A = x1 y2 + x2 y1 + x1 y1,  B = x0 y1 + x1 y0 + x0 y0,  C = x0 y2 + x2 y0
// in six low products. Sums, differences and what a fold adds take the way of the products over Z_2, beside the
// multipliers. f1 f0 f2 hold parts 0 1 2 of a sum: the order in which the mask stage has adders for them.
module cross_products (
    input  logic             clk,
    input  accel_pkg::ctl_t  ctl,
    input  logic [127:0]     x0, x1, x2, y0, y1, y2,
    output logic [127:0]     f0, f1, f2, f3
);

  // Stage 1: sums of factors.
  logic [127:0] y12, y01;
  ring_add add_y12 (.ring(ctl.ring), .subtract(1'b0), .a(y1), .b(y2), .y(y12));
  ring_add add_y01 (.ring(ctl.ring), .subtract(1'b0), .a(y0), .b(y1), .y(y01));

  logic [127:0] ax0, ax1, ax2, ay0, ay1, ay2, ay12, ay01;
  logic [1:0]   aring;
  logic         amultiply, afold, asubtract, areceives;
  always_ff @(posedge clk) begin
    {ax0, ax1, ax2, ay0, ay1, ay2, ay12, ay01} <= {x0, x1, x2, y0, y1, y2, y12, y01};
    {aring, amultiply, afold, asubtract, areceives} <= {ctl.ring, ctl.multiply, ctl.fold, ctl.subtract, ctl.receives};
  end

  // Stages 2 to 7: products.
  logic [127:0] q0, q1, q2, q3, q4, q5;
  logic         z64;
  assign z64 = aring == accel_pkg::Z64;
  mul_ring mul0 (.clk, .z64, .a(ax1), .b(ay12), .p(q0));
  mul_ring mul1 (.clk, .z64, .a(ax2), .b(ay1), .p(q1));
  mul_ring mul2 (.clk, .z64, .a(ax0), .b(ay01), .p(q2));
  mul_ring mul3 (.clk, .z64, .a(ax1), .b(ay0), .p(q3));
  mul_ring mul4 (.clk, .z64, .a(ax0), .b(ay2), .p(q4));
  mul_ring mul5 (.clk, .z64, .a(ax2), .b(ay0), .p(q5));

  // Beside them: everything that needs no multiplier.
  logic [127:0] l0, l1, l2;
  ring_add linear0 (.ring(aring), .subtract(asubtract), .a(ax0), .b(ay0), .y(l0));
  ring_add linear1 (.ring(aring), .subtract(asubtract), .a(ax1), .b(ay1), .y(l1));
  ring_add linear2 (.ring(aring), .subtract(asubtract), .a(ax2), .b(ay2), .y(l2));

  logic [511:0] beside[accel_pkg::MUL_CYCLES];
  always_ff @(posedge clk) begin
    if (amultiply)
      beside[0] <= {(ax1 & ay12) ^ (ax2 & ay1), (ax0 & ay01) ^ (ax1 & ay0), (ax0 & ay2) ^ (ax2 & ay0), ay0};
    else if (afold)  // a C that does not come adds nothing
      beside[0] <= {ax0, ax1, ax2, areceives ? ay0 : 128'b0};
    else beside[0] <= {l1, l0, l2, ay0};
    for (int i = 1; i < accel_pkg::MUL_CYCLES; i++) beside[i] <= beside[i-1];
  end

  // Stage 8: sums of two products.
  typedef struct packed {
    logic       integers;  // the multipliers' results count
    logic       active;
    logic       first_term;
    logic [1:0] ring;
  } late_t;
  logic [4:0] late[accel_pkg::MUL_CYCLES+2]; // index t: as many cycles after the operands
  assign late[0] = {ctl.multiply && ctl.ring != accel_pkg::Z2, ctl.active, ctl.first_term, ctl.ring};
  always_ff @(posedge clk) for (int i = 1; i < accel_pkg::MUL_CYCLES + 2; i++) late[i] <= late[i-1];

  logic [1:0]   ring;
  late_t        at7, at8;
  logic [127:0] s0, s1, s2, b0, b1, b2, b3, g0, g1, g2, g3;
  assign at7  = late[accel_pkg::MUL_CYCLES+1];
  assign ring = at7.ring;
  ring_add pair0 (.ring, .subtract(1'b0), .a(q0), .b(q1), .y(s0));
  ring_add pair1 (.ring, .subtract(1'b0), .a(q2), .b(q3), .y(s1));
  ring_add pair2 (.ring, .subtract(1'b0), .a(q4), .b(q5), .y(s2));
  assign {b0, b1, b2, b3} = beside[accel_pkg::MUL_CYCLES-1];

  always_ff @(posedge clk) begin
    {g0, g1, g2} <= at7.integers ? {s0, s1, s2} : {b0, b1, b2};
    g3  <= b3;
    at8 <= at7;
  end

  // Stage 9: sums over terms.
  logic [127:0] h0, h1, h2;
  ring_add sum0 (.ring(at8.ring), .subtract(1'b0), .a(f0), .b(g0), .y(h0));
  ring_add sum1 (.ring(at8.ring), .subtract(1'b0), .a(f1), .b(g1), .y(h1));
  ring_add sum2 (.ring(at8.ring), .subtract(1'b0), .a(f2), .b(g2), .y(h2));
  always_ff @(posedge clk) begin
    if (at8.active) begin
      {f0, f1, f2} <= at8.first_term ? {g0, g1, g2} : {h0, h1, h2};
      f3 <= g3;
    end
  end

  logic unused;
  assign unused = ^{ctl, at8.integers};
endmodule
