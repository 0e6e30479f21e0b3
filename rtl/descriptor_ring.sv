// The ring of descriptors: eight slots of eight 128-bit words, of which six are used. The host writes words and moves the
// tail; the ring fetches, checks, asks the memory for the streams and hands commands on, in order, one ahead of what runs.
//
//   word  bits      field
//   0     7:0       operation: 0 add, 1 subtract, 2 multiply, 3 fold
//         15:8      ring: 0 Z_2^128, 1 Z_2^64, 2 Z_2
//         23:16     flags: 0 masked, 1 digest, 2 expose, 3 second half
//         47:32     the host's number for the command
//         95:64     blocks of the result
//         127:96    terms
//   1     63:0      first block's index in its round
//         111:64    round
//   2     63:0      source address          127:64  destination address
//   3     63:0      message address         95:64   blocks from one source plane to the next
//   4, 5            digests of A and C to go on with
//
// Source planes: x0 x1 x2 y0 y1 y2, each `terms` runs of `blocks`; of a fold z1 z2 a c. Destination planes: z0 z1 z2; of a
// fold z1 z2. Message planes: a, c, and what is vouched for of a and c. Who the peers are follows from the seat.
module descriptor_ring (
    input  logic         clk,
    input  logic         rst,
    input  logic         configured,
    input  logic [1:0]   seat,
    // The host's side.
    input  logic         write,
    input  logic [5:0]   write_at,
    input  logic [127:0] write_data,
    input  logic         bell,
    input  logic [3:0]   bell_tail,
    output logic [3:0]   head,
    output logic         empty,
    // Requests to the memory: streams 0 to 5 in, 0 to 6 out.
    output logic         dma_valid,
    input  logic         dma_ready,
    output logic         dma_write,
    output logic [2:0]   dma_stream,
    output logic [63:0]  dma_address,
    output logic [31:0]  dma_blocks,
    output logic [31:0]  dma_terms,
    // Commands.
    output logic            valid,
    input  logic            ready,
    output accel_pkg::ctl_t ctl,
    output logic [15:0]     id,
    output logic [31:0]     blocks,
    output logic [31:0]     terms,
    output logic [63:0]     first,
    output logic [47:0]     round,
    output logic [127:0]    prior_a,
    output logic [127:0]    prior_c
);

  typedef enum logic [1:0] {IDLE, FETCH, STREAMS, HAND} state_t;
  state_t       state;
  logic [127:0] memory[64];
  logic [127:0] word;
  logic [3:0]   tail;
  logic [2:0]   at, at_word;
  logic [3:0]   step;       // streams in, then streams out
  logic [31:0]  plane;
  logic [63:0]  destination, message;
  logic [63:0]  address;

  assign empty = head == tail && state == IDLE;

  always_ff @(posedge clk) begin
    if (write) memory[write_at] <= write_data;
    word <= memory[{head[2:0], at}];
    at_word <= at;
  end

  // Word 0, as it comes.
  logic [7:0] operation, elements, flags;
  logic       sensible, multiply, second, sends, receives;
  assign {flags, elements, operation} = word[23:0];
  assign multiply  = operation[1:0] == accel_pkg::OP_MULTIPLY;
  assign second    = flags[3];
  assign sends     = seat[1] == second;
  // Seats 1 and 2 are before those in the other half.
  assign receives  = (seat[1] ^ seat[0]) == second;
  assign sensible = configured && operation < 8'd4 && elements < 8'd3 && flags < 8'd16 && word[95:64] != 0
      && (multiply ? word[127:96] != 0 : word[127:96] == 32'd1);

  // Which streams a command has.
  logic [6:0] in, out;
  assign in  = ctl.fold ? {3'b0, ctl.receives, 3'b111} : 7'b0111111;
  assign out = ctl.fold ? 7'b0000110
      : ctl.multiply ? {ctl.expose && !ctl.sends, ctl.expose, ctl.sends, 4'b1111} : 7'b0000111;

  logic       there;
  logic [2:0] stream;
  assign stream      = step < 4'd6 ? step[2:0] : 3'(step - 4'd6);
  assign there       = step < 4'd6 ? in[stream] : out[stream];
  assign dma_valid   = state == STREAMS && there;
  assign dma_write   = step >= 4'd6;
  assign dma_stream  = stream;
  assign dma_address = address;
  assign dma_blocks  = blocks;
  assign dma_terms   = dma_write ? 32'd1 : terms;
  assign valid       = state == HAND;

  always_ff @(posedge clk) begin
    if (bell) tail <= bell_tail;
    unique case (state)
      IDLE: begin
        at <= '0;
        if (head != tail) begin
          at <= 3'd1;
          state <= FETCH;
        end
      end
      FETCH: begin
        at <= at + 3'd1;
        unique case (at_word)
          3'd0: begin
            ctl <= '0;
            ctl.refused <= !sensible;
            ctl.multiply <= multiply;
            ctl.fold <= operation[1:0] == accel_pkg::OP_FOLD;
            ctl.subtract <= operation[1:0] == accel_pkg::OP_SUB;
            ctl.ring <= elements[1:0];
            ctl.sends <= multiply && sends;
            ctl.receives <= receives;
            {ctl.expose, ctl.digest, ctl.masked} <= flags[2:0];
            id <= word[47:32];
            blocks <= word[95:64];
            terms <= word[127:96];
          end
          3'd1: {round, first} <= word[111:0];
          3'd2: {destination, address} <= word;
          3'd3: {plane, message} <= word[95:0];
          3'd4: prior_a <= word;
          default: begin
            prior_c <= word;
            step <= '0;
            state <= ctl.refused ? HAND : STREAMS;
          end
        endcase
      end
      STREAMS:
      if (!there || dma_ready) begin
        step <= step + 4'd1;
        if (step == 4'd5) address <= destination;
        else if (step == 4'd8) address <= message;
        else if (there || step > 4'd8) address <= address + {28'b0, dma_write ? blocks : plane, 4'b0};
        if (step == 4'd12) state <= HAND;
      end
      HAND:
      if (ready) begin
        head <= head + 4'd1;
        at <= '0;
        state <= IDLE;
      end
    endcase
    if (rst) begin
      state <= IDLE;
      {head, tail, at} <= '0;
    end
  end
endmodule
