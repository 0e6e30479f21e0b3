// Low products of 128-bit numbers, or of two pairs of 64-bit numbers, from fifteen 27 x 27 multipliers, one per cycle.
//
// Limbs have 27 bits, 0 the lowest. A 128-bit low product needs the limb products (i, j) with i + j <= 4; a 64-bit one
// those with i + j <= 2. The low pair uses the first six multipliers as they are, with limb 2 cut to 10 bits. The high
// pair uses six of the other nine: their operands come over a second set of limb registers, chosen so that the nine
// edges of the walk  b4-a0-b3-a1-b2-a2-b1-a3-b0-a4  (the products with i + j >= 3) cover the six products of its limbs h:
//   a0 = h0, a1 = h1, a2 = h0, a3 = h2;  b1 = h0', b2 = h0', b3 = h1', b4 = h2'.
(* keep_hierarchy *)
module mul_ring (
    input  logic         clk,
    input  logic         z64,
    input  logic [127:0] a,
    input  logic [127:0] b,
    output logic [127:0] p
);
  logic [26:0] al0, al1, al2, bl0, bl1, bl2;
  logic [26:0] ah0, ah1, ah2, ah3, bh1, bh2, bh3, bh4;
  logic [26:0] ah4, bh0;
  logic [3:0] narrow;

  always_ff @(posedge clk) begin
    narrow <= {narrow[2:0], z64};
    al0 <= a[26:0];
    al1 <= a[53:27];
    al2 <= z64 ? {17'b0, a[63:54]} : a[80:54];
    bl0 <= b[26:0];
    bl1 <= b[53:27];
    bl2 <= z64 ? {17'b0, b[63:54]} : b[80:54];
    ah0 <= z64 ? a[90:64] : a[26:0];
    ah1 <= z64 ? a[117:91] : a[53:27];
    ah2 <= z64 ? a[90:64] : a[80:54];
    ah3 <= z64 ? {17'b0, a[127:118]} : a[107:81];
    ah4 <= {7'b0, a[127:108]};
    bh0 <= b[26:0];
    bh1 <= z64 ? b[90:64] : b[53:27];
    bh2 <= z64 ? b[90:64] : b[80:54];
    bh3 <= z64 ? b[117:91] : b[107:81];
    bh4 <= z64 ? {17'b0, b[127:118]} : {7'b0, b[127:108]};
  end

  logic [53:0] p00, p01, p10, p02, p11, p20;
  logic [53:0] p03, p12, p21, p30;
  logic [53:0] p04, p13, p22, p31, p40;
  always_ff @(posedge clk) begin
    p00 <= al0 * bl0;
    p01 <= al0 * bl1;
    p10 <= al1 * bl0;
    p02 <= al0 * bl2;
    p11 <= al1 * bl1;
    p20 <= al2 * bl0;
    p03 <= ah0 * bh3;
    p12 <= ah1 * bh2;
    p21 <= ah2 * bh1;
    p30 <= ah3 * bh0;
    p04 <= ah0 * bh4;
    p13 <= ah1 * bh3;
    p22 <= ah2 * bh2;
    p31 <= ah3 * bh1;
    p40 <= ah4 * bh0;
  end

  // Columns. For two pairs: t0 = p22 is column 0 of the high one, c3 = p03 + p12 column 1, c4 = p04 + p13 + p31 column 2.
  logic [53:0] c0, t0;
  logic [54:0] c1, c3, c3b;
  logic [55:0] c2;
  logic [19:0] c4;
  always_ff @(posedge clk) begin
    c0  <= p00;
    t0  <= p22;
    c1  <= {1'b0, p01} + {1'b0, p10};
    c2  <= {2'b0, p02} + {2'b0, p11} + {2'b0, p20};
    c3  <= {1'b0, p03} + {1'b0, p12};
    c3b <= narrow[1] ? '0 : {1'b0, p21} + {1'b0, p30};
    c4  <= p04[19:0] + p13[19:0] + p31[19:0] + (narrow[1] ? '0 : p22[19:0] + p40[19:0]);
  end

  // What lies above column 2, in units of its first column.
  logic [82:0] s;
  logic [46:0] t;
  logic [55:0] d2;
  logic [53:0] u0;
  always_ff @(posedge clk) begin
    s  <= {29'b0, c0} + {1'b0, c1, 27'b0};
    t  <= c3[46:0] + c3b[46:0] + {c4, 27'b0};
    d2 <= c2;
    u0 <= t0;
  end

  logic [110:0] sum;
  logic [110:0] r;
  logic [46:0]  v;
  assign sum = {28'b0, s} + {1'b0, d2, 54'b0};
  always_ff @(posedge clk) begin
    r <= narrow[3] ? {u0[46:0], sum[63:0]} : sum;
    v <= t;
  end

  logic       wide_high;
  logic [6:0] u0_top;
  always_ff @(posedge clk) begin
    wide_high <= narrow[3];
    u0_top    <= narrow[3] ? u0[53:47] : '0;
    p[63:0]   <= r[63:0];
    p[127:64] <= {10'b0, u0_top, r[110:64]} + (wide_high ? {v[36:0], 27'b0} : {v, 17'b0});
  end

  logic unused;
  assign unused = &{1'b0, p04[53:20], p13[53:20], p31[53:20], p40[53:20], c3[54:47], c3b[54:47]};
endmodule
