// Stage 1 behind the products, and stage 2: takes masks off and puts them on. Three cycles. Masks that a beat does not use
// are zero. What the six messages are, and which stream hides which, is in crates/accel/src/lib.rs.
//
//            multiply                      fold            sum or difference
//   f0 f1 f2 A B C                         z1 z2 a         parts 1 0 2
//   f3                                     c
module mask_stage (
    input  logic            clk,
    input  accel_pkg::ctl_t ctl,
    input  logic [127:0]    f0, f1, f2, f3,
    input  logic [127:0]    rho_a,   // of the own A
    input  logic [127:0]    rho_b,   // of A of the seat before
    input  logic [127:0]    rho_4,   // of A of the seat two further on
    input  logic [127:0]    rho_5,   // of the C that passes this seat by
    input  logic [127:0]    wire_a,  // hides the own A; what hid the C that came
    input  logic [127:0]    wire_b,  // hides A of the seat before
    input  logic [127:0]    even,    // where this seat sends C: its rho; else what hides the C it vouches for; and
                                     // what hid the A that came
    input  logic [127:0]    odd,     // what hides the C that is sent, else the rho of the other
    output logic [127:0]    z0, z1, z2,
    output logic [127:0]    sent_a,
    output logic [127:0]    checked_a, // A vouched for; of a fold, the A that came
    output logic [127:0]    own_c      // C sent or vouched for; of a fold, the C that came
);
  // First cycle: masks off.
  logic [127:0] rho_c, wire_c;
  assign rho_c  = ctl.sends ? even : odd;
  assign wire_c = ctl.sends ? odd : even;

  logic [127:0] da, db, dc, du;
  ring_add sub_a (.ring(ctl.ring), .subtract(1'b1), .a(ctl.fold ? f2 : f0), .b(ctl.fold ? even : rho_a), .y(da));
  ring_add sub_b (.ring(ctl.ring), .subtract(1'b1), .a(f1), .b(rho_b), .y(db));
  ring_add sub_c (.ring(ctl.ring), .subtract(1'b1), .a(ctl.fold ? f3 : f2), .b(ctl.fold ? wire_a : rho_c), .y(dc));
  ring_add add_u (.ring(ctl.ring), .subtract(1'b0), .a(rho_b), .b(rho_5), .y(du));

  logic [127:0] a, b, c, u, v, r4, rc, wa, wb, wc;
  logic [1:0]   ring;
  logic         fold, sends;
  always_ff @(posedge clk) begin
    {ring, fold, sends} <= {ctl.ring, ctl.fold, ctl.sends};
    a  <= da;
    b  <= ctl.fold ? f2 : db;
    c  <= dc;
    u  <= ctl.fold ? f0 : du;
    v  <= ctl.fold ? f1 : rho_a;
    r4 <= rho_4;
    rc <= rho_c;
    wa <= wire_a;
    wb <= wire_b;
    // A fold digests what came: the mask that came off goes on again.
    wc <= ctl.fold ? wire_a : wire_c;
  end

  // Second cycle: parts of the result, messages.
  logic [127:0] s0, s1, s2, ma, mb, mc;
  ring_add add_0 (.ring, .subtract(1'b0), .a(b), .b(r4), .y(s0));
  ring_add add_1 (.ring, .subtract(1'b0), .a(fold ? c : a), .b(u), .y(s1));
  ring_add add_2 (.ring, .subtract(1'b0), .a(fold ? a : sends ? rc : c), .b(v), .y(s2));
  ring_add add_a (.ring, .subtract(1'b0), .a(a), .b(wa), .y(ma));
  ring_add add_b (.ring, .subtract(1'b0), .a(b), .b(wb), .y(mb));
  ring_add add_c (.ring, .subtract(1'b0), .a(c), .b(wc), .y(mc));

  logic [127:0] p0, p1, p2, pa, pb, pc, rest;
  logic [1:0]   ring2;
  always_ff @(posedge clk) begin
    {p0, p1, p2, pa, pb, pc} <= {s0, s1, s2, ma, mb, mc};
    rest  <= sends ? c : rc;
    ring2 <= ring;
  end

  // Third cycle.
  logic [127:0] t0;
  ring_add add_rest (.ring(ring2), .subtract(1'b0), .a(p0), .b(rest), .y(t0));
  always_ff @(posedge clk) {z0, z1, z2, sent_a, checked_a, own_c} <= {t0, p1, p2, pa, pb, pc};

  logic unused;
  assign unused = ^ctl;
endmodule
