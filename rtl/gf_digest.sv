// The tag of a message: x[0] h^n + x[1] h^(n-1) + .. + x[n-1] h after what was digested `prior`, one block per cycle.
//
// Horner's rule feeds a product back that takes four cycles. So block i meets the sum that block i - 4 left and is
// multiplied by h^4; the last four are multiplied by h^4, h^3, h^2, h, and their products are the digest's four parts.
// It is the same polynomial: no padding, no steps at the end, and a message may follow the one before without a gap.
(* keep_hierarchy *)
module gf_digest (
    input  logic         clk,
    input  logic         active,  // a block of the message
    input  logic         first,
    input  logic         fresh,   // one of the first four
    input  logic [2:0]   left,    // blocks to come, with this one; 0: more than four
    input  logic [127:0] x,
    input  logic [127:0] prior,
    input  logic [127:0] power,   // h to the power of `left`, or of four
    // The multiplier for the powers themselves, while no message passes.
    input  logic         borrow,
    input  logic [127:0] borrow_a,
    input  logic [127:0] borrow_b,
    output logic [127:0] product, // three cycles after
    output logic [127:0] digest   // four cycles after the last block
);

  logic [127:0] sums[accel_pkg::LANES];
  logic [1:0]   slot_next, slot;
  assign slot = first ? 2'd0 : slot_next;

  logic [127:0] u, h;
  always_ff @(posedge clk) begin
    u <= borrow ? borrow_a : x ^ (first ? prior : '0) ^ (fresh ? '0 : sums[slot]);
    h <= borrow ? borrow_b : power;
    if (active) slot_next <= slot + 2'd1;
  end
  gf_mul mul (.clk, .a(u), .b(h), .y(product));

  // Which sum the product becomes, and whether it is a part of the digest, the first of them.
  typedef struct packed {
    logic       active;
    logic [1:0] slot;
    logic       part;
    logic       part_first;
  } way_t;
  way_t way0, way1, way2;
  always_ff @(posedge clk) begin
    way0.active <= active;
    way0.slot <= slot;
    way0.part <= left != 0;
    way0.part_first <= first || left == 3'd4;
    way1 <= way0;
    way2 <= way1;
    if (way2.active) begin
      sums[way2.slot] <= product;
      if (way2.part) digest <= way2.part_first ? product : digest ^ product;
    end
  end
endmodule
