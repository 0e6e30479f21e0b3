// Sum or difference of two blocks, element by element. The carry stops at 64 bits where elements do; over Z_2 both are
// exclusive or. Combinational.
module ring_add (
    input  logic [1:0]   ring,
    input  logic         subtract,
    input  logic [127:0] a,
    input  logic [127:0] b,
    output logic [127:0] y
);

  logic [127:0] addend;
  logic [65:0]  low;
  logic [65:0]  high;
  assign addend = b ^ {128{subtract}};
  // The lowest bit takes the carry in.
  assign low  = {1'b0, a[63:0], 1'b1} + {1'b0, addend[63:0], subtract};
  assign high = {1'b0, a[127:64], 1'b1} + {1'b0, addend[127:64], ring == accel_pkg::Z128 ? low[65] : subtract};
  assign y    = ring == accel_pkg::Z2 ? a ^ b : {high[64:1], low[64:1]};

  logic unused;
  assign unused = &{1'b0, low[0], high[0], high[65]};
endmodule
