// The accelerator of one seat: descriptors in, six streams in, seven streams out, completions out.
//
//   descriptors -> descriptor_ring -> issue --+--> cross (products) --> delay --+--> mask_stage --> streams out
//   streams in  -> skid registers  ---^       +--> eight aes_lane -------------+        |
//                                             +--> control -------------------- +        +--> gf_digest (A), gf_digest (C)
//
// One block of a product per cycle, with all its masks and tags. The pipeline never waits: a beat is issued when its
// operands are there and every stream out has room for what is under way. Commands follow each other without a gap.
module accel_core (
    input  logic         clk,
    input  logic         rst,
    // Configuration, while nothing runs. 0 to 2: AES-128 keys by part; 4 to 6: elements of tags by part; 8: the seat, last.
    input  logic         config_valid,
    output logic         config_ready,
    input  logic [3:0]   config_at,
    input  logic [127:0] config_data,
    // Descriptors.
    input  logic         write,
    input  logic [5:0]   write_at,
    input  logic [127:0] write_data,
    input  logic         bell,
    input  logic [3:0]   bell_tail,
    output logic [3:0]   head,
    // Requests to the memory.
    output logic         dma_valid,
    input  logic         dma_ready,
    output logic         dma_write,
    output logic [2:0]   dma_stream,
    output logic [63:0]  dma_address,
    output logic [31:0]  dma_blocks,
    output logic [31:0]  dma_terms,
    // Streams in.
    input  logic [5:0]   in_valid,
    output logic [5:0]   in_ready,
    input  logic [767:0] in_data,
    // Streams out: z0 z1 z2, A and C to send, A and C vouched for.
    output logic [6:0]   out_valid,
    input  logic [6:0]   out_ready,
    output logic [895:0] out_data,
    // Completions: a command's results have all left.
    output logic         done_valid,
    input  logic         done_ready,
    output logic [15:0]  done_id,
    output logic         done_refused,
    output logic [31:0]  done_cycles,
    output logic [127:0] done_a,
    output logic [127:0] done_c
);

  localparam int LOG_OUT = 6;
  localparam int AFTER = accel_pkg::AES_CYCLES + 3; // beat to results
  // Beats under way when the room was last looked at, and one more.
  localparam int SLACK = 2;

  // Configuration.
  logic [1:0]   seat;
  logic         configured, idle;
  logic [2:0]   keys_busy;
  logic         powers_busy;
  logic [3:0]   open; // commands handed over and not completed
  assign config_ready = idle && keys_busy == 0 && !powers_busy;

  logic         configure;
  assign configure = config_valid && config_ready;
  always_ff @(posedge clk) begin
    if (configure && config_at == 4'd8) {configured, seat} <= {1'b1, config_data[1:0]};
    if (rst) configured <= 1'b0;
  end

  logic [1407:0] keys0, keys1, keys2;
  aes_keys schedule0 (.clk, .rst, .load(configure && config_at == 4'd0), .key(config_data), .busy(keys_busy[0]), .keys(keys0));
  aes_keys schedule1 (.clk, .rst, .load(configure && config_at == 4'd1), .key(config_data), .busy(keys_busy[1]), .keys(keys1));
  aes_keys schedule2 (.clk, .rst, .load(configure && config_at == 4'd2), .key(config_data), .busy(keys_busy[2]), .keys(keys2));

  // Commands.
  logic         next_valid, next_ready, ring_empty;
  accel_pkg::ctl_t         next_ctl;
  logic [15:0]  next_id;
  logic [31:0]  next_blocks, next_terms;
  logic [63:0]  next_first;
  logic [47:0]  next_round;
  logic [127:0] next_prior_a, next_prior_c;
  descriptor_ring ring (
      .clk, .rst, .configured, .seat,
      .write, .write_at, .write_data, .bell, .bell_tail, .head, .empty(ring_empty),
      .dma_valid, .dma_ready, .dma_write, .dma_stream, .dma_address, .dma_blocks, .dma_terms,
      .valid(next_valid), .ready(next_ready), .ctl(next_ctl), .id(next_id), .blocks(next_blocks), .terms(next_terms),
      .first(next_first), .round(next_round), .prior_a(next_prior_a), .prior_c(next_prior_c)
  );

  logic [31:0] clock;
  always_ff @(posedge clk) clock <= rst ? '0 : clock + 32'd1;

  // Streams in.
  logic [5:0]   have, take;
  logic [127:0] operand[6];
  for (genvar i = 0; i < 6; i++) begin : g_in
    stream_skid skid (
        .clk, .rst,
        .in_valid(in_valid[i]), .in_ready(in_ready[i]), .in(in_data[128*i+:128]),
        .valid(have[i]), .ready(take[i]), .out(operand[i])
    );
  end

  // Issue: a beat per cycle.
  logic         running, finishing, fire, room;
  accel_pkg::ctl_t         now;
  logic [31:0]  blocks_left, terms, terms_left;
  logic [2:0]   blocks_done; // up to LANES
  logic [63:0]  counter;
  logic [47:0]  round;
  logic [5:0]   need;
  assign need = now.refused ? 6'b0 : now.fold ? {2'b0, now.receives, 3'b111} : 6'b111111;
  assign fire = running && (now.refused || (room && &(have | ~need)));
  assign take = fire ? need : 6'b0;
  assign finishing = fire && (now.refused || (terms_left == 32'd1 && blocks_left == 32'd1));
  assign next_ready = (!running || finishing) && open != 4'd8;

  logic handed;
  assign handed = next_valid && next_ready;
  always_ff @(posedge clk) begin
    if (fire) begin
      terms_left <= terms_left - 32'd1;
      if (terms_left == 32'd1) begin
        terms_left <= terms;
        blocks_left <= blocks_left - 32'd1;
        counter <= counter + 64'd1;
        if (blocks_done != 3'(accel_pkg::LANES)) blocks_done <= blocks_done + 3'd1;
      end
    end
    if (handed) begin
      now <= next_ctl;
      blocks_left <= next_blocks;
      {terms, terms_left} <= {2{next_terms}};
      blocks_done <= '0;
      counter <= next_first;
      round <= next_round;
    end
    running <= !rst && (handed || (running && !finishing));
  end

  // The beat.
  accel_pkg::ctl_t         beat;
  logic [127:0] x0, x1, x2, y0, y1, y2;
  logic [63:0]  beat_counter;
  logic [47:0]  beat_round;
  always_ff @(posedge clk) begin
    beat <= now;
    beat.active <= fire && !now.refused;
    beat.valid <= fire && !now.refused && terms_left == 32'd1;
    beat.done <= finishing;
    beat.first_term <= terms_left == terms;
    beat.first <= blocks_done == 0;
    beat.fresh <= blocks_done != 3'(accel_pkg::LANES);
    beat.left <= blocks_left <= 32'(accel_pkg::LANES) ? blocks_left[2:0] : '0;
    {x0, x1, x2} <= {operand[0], operand[1], operand[2]};
    {y0, y1, y2} <= {operand[3], operand[4], operand[5]};
    {beat_counter, beat_round} <= {counter, round};
    if (rst) {beat.active, beat.valid, beat.done} <= '0;
  end

  // Products.
  logic [127:0] e0, e1, e2, e3, f0, f1, f2, f3;
  cross_products products (.clk, .ctl(beat), .x0, .x1, .x2, .y0, .y1, .y2, .f0(e0), .f1(e1), .f2(e2), .f3(e3));
  delay_line #(.WIDTH(512), .DELAY(accel_pkg::AES_CYCLES - accel_pkg::CROSS_CYCLES)) wait_for_masks (
      .clk, .rst, .in({e0, e1, e2, e3}), .out({f0, f1, f2, f3})
  );

  // Masks: a counter block is round, use, sender, voucher, index.
  logic [127:0] lane_out[8];
  logic [127:0] lane_in[8];
  logic [7:0]   lane_on;
  logic [1:0]   s1, s2, s3;
  logic         vouches;
  assign {s1, s2, s3} = {seat + 2'd1, seat + 2'd2, seat + 2'd3};
  assign vouches = beat.digest || beat.expose;

  function automatic logic [127:0] block(input logic [47:0] r, input logic [7:0] use_, input logic [1:0] sender,
                                         input logic [1:0] voucher, input logic [63:0] index);
    block = {r, use_, 2'b0, sender, 2'b0, voucher, index};
  endfunction

  always_comb begin
    lane_in[0] = block(beat_round, accel_pkg::USE_MASK, seat, s1, beat_counter);
    lane_in[1] = block(beat_round, accel_pkg::USE_MASK, s3, seat, beat_counter);
    lane_in[2] = block(beat_round, accel_pkg::USE_MASK, s2, s3, beat_counter);
    lane_in[3] = block(beat_round, accel_pkg::USE_MASK, s3, s1, beat_counter);
    lane_in[4] = beat.fold ? block(beat_round, accel_pkg::USE_WIRE, s1, s3, beat_counter)
                           : block(beat_round, accel_pkg::USE_WIRE, seat, s1, beat_counter);
    lane_in[5] = block(beat_round, accel_pkg::USE_WIRE, s3, seat, beat_counter);
    lane_in[6] = beat.fold ? block(beat_round, accel_pkg::USE_WIRE, s1, s2, beat_counter)
               : beat.sends ? block(beat_round, accel_pkg::USE_MASK, seat, s2, beat_counter)
                            : block(beat_round, accel_pkg::USE_WIRE, s2, seat, beat_counter);
    lane_in[7] = beat.sends ? block(beat_round, accel_pkg::USE_WIRE, seat, s2, beat_counter)
                            : block(beat_round, accel_pkg::USE_MASK, s2, seat, beat_counter);
    lane_on[0] = beat.multiply;
    lane_on[1] = beat.multiply;
    lane_on[2] = beat.multiply;
    lane_on[3] = beat.multiply && !beat.receives;
    lane_on[4] = beat.masked && (beat.multiply || (beat.fold && beat.receives));
    lane_on[5] = beat.masked && beat.multiply && vouches;
    lane_on[6] = beat.fold ? beat.masked : beat.multiply && (beat.sends || (beat.masked && vouches));
    lane_on[7] = beat.multiply && (!beat.sends || beat.masked);
    if (!beat.valid) lane_on = '0;
  end
  for (genvar i = 0; i < 8; i++) begin : g_lane
    // The part whose key a lane has.
    localparam int PART = i == 0 || i == 6 ? 2 : i == 1 || i == 3 || i == 4 ? 1 : 0;
    aes_lane lane (
        .clk, .enable(lane_on[i]), .x(lane_in[i]), .keys(PART == 0 ? keys0 : PART == 1 ? keys1 : keys2), .y(lane_out[i])
    );
  end

  // Control, in step. Nothing may look valid that is not.
  logic [accel_pkg::CTL_BITS-1:0] late[AFTER+1];
  assign late[0] = beat;
  always_ff @(posedge clk)
    for (int i = 1; i <= AFTER; i++) begin
      late[i] <= late[i-1];
      if (rst) late[i] <= '0;
    end

  accel_pkg::ctl_t unmasking;
  assign unmasking = late[accel_pkg::AES_CYCLES];

  logic [127:0] z0, z1, z2, sent_a, checked_a, own_c;
  mask_stage masks (
      .clk, .ctl(unmasking), .f0, .f1, .f2, .f3,
      .rho_a(lane_out[0]), .rho_b(lane_out[1]), .rho_4(lane_out[2]), .rho_5(lane_out[3]),
      .wire_a(lane_out[4]), .wire_b(lane_out[5]), .even(lane_out[6]), .odd(lane_out[7]),
      .z0, .z1, .z2, .sent_a, .checked_a, .own_c
  );

  // Streams out.
  accel_pkg::ctl_t         leaving;
  logic [6:0]   push, full;
  logic [127:0] result[7];
  assign leaving = late[AFTER];
  assign push = !leaving.valid ? 7'b0 : leaving.fold ? 7'b0000110
      : leaving.multiply ? {leaving.expose && !leaving.sends, leaving.expose, leaving.sends, 4'b1111} : 7'b0000111;
  always_comb begin
    result[0] = z0;
    result[1] = z1;
    result[2] = z2;
    result[3] = sent_a;
    result[4] = own_c;
    result[5] = checked_a;
    result[6] = own_c;
  end

  logic [LOG_OUT:0] under_way; // beats issued whose results are not in the buffers
  logic [LOG_OUT:0] used[7];
  logic [6:0]       last_out, ended;
  logic [6:0]       owed;      // streams of the completion that waits
  logic             completed;
  for (genvar i = 0; i < 7; i++) begin : g_out
    stream_fifo #(.WIDTH(129), .LOG_DEPTH(LOG_OUT)) buffer (
        .clk, .rst, .push(push[i]), .in({leaving.done, result[i]}), .used(used[i]),
        .valid(out_valid[i]), .ready(out_ready[i]), .out({last_out[i], out_data[128*i+:128]})
    );
    // The sum has one bit more: it may pass the depth.
    assign full[i] = {1'b0, used[i]} + {1'b0, under_way} >= (LOG_OUT+2)'((1 << LOG_OUT) - SLACK);
    // Commands whose last block has left by this stream and that are not completed.
    logic [3:0] gone;
    assign ended[i] = gone != 0;
    always_ff @(posedge clk)
      if (rst) gone <= '0;
      else gone <= gone + {3'b0, out_valid[i] && out_ready[i] && last_out[i]} - {3'b0, completed && owed[i]};
  end
  logic issue;
  assign issue = fire && !now.refused && terms_left == 32'd1;
  always_ff @(posedge clk) begin
    under_way <= rst ? '0 : under_way + {{LOG_OUT{1'b0}}, issue} - {{LOG_OUT{1'b0}}, leaving.valid};
    room <= !rst && full == 0;
  end

  // Tags.
  logic [127:0] prior_a, prior_c, power_a, power_c, digest_a, digest_c, product_a;
  logic [127:0] borrow_a, borrow_b;
  logic         borrow, digest_first;
  logic         digest_c_on;
  assign digest_c_on = leaving.fold ? leaving.receives : !leaving.sends;
  gf_powers tag_powers (
      .clk, .rst, .load(configure && config_at[3:2] == 2'b01), .load_part(config_at[1:0]), .element(config_data),
      .busy(powers_busy), .borrow, .borrow_a, .borrow_b, .product(product_a),
      .part_a(leaving.fold ? 2'd0 : 2'd2), .part_c(leaving.fold ? 2'd0 : 2'd1),
      .exponent_a(leaving.left), .exponent_c(leaving.left), .power_a, .power_c
  );
  gf_digest tag_a (
      .clk, .active(leaving.valid && leaving.digest), .first(leaving.first), .fresh(leaving.fresh), .left(leaving.left),
      .x(checked_a), .prior(prior_a), .power(power_a), .borrow, .borrow_a, .borrow_b,
      .product(product_a), .digest(digest_a)
  );
  logic [127:0] unused_product;
  gf_digest tag_c (
      .clk, .active(leaving.valid && leaving.digest && digest_c_on), .first(leaving.first), .fresh(leaving.fresh),
      .left(leaving.left), .x(own_c), .prior(prior_c), .power(power_c),
      .borrow(1'b0), .borrow_a('0), .borrow_b('0), .product(unused_product), .digest(digest_c)
  );

  // What waits for a command's first and last block: it is there long before.
  assign digest_first = leaving.refused ? leaving.done : leaving.valid && leaving.first;
  logic       prior_valid;
  logic [3:0] prior_used;
  stream_fifo #(.WIDTH(256), .LOG_DEPTH(3)) priors (
      .clk, .rst, .push(handed), .in({next_prior_c, next_prior_a}), .used(prior_used),
      .valid(prior_valid), .ready(digest_first), .out({prior_c, prior_a})
  );

  // Completions wait until the command's last block has left by every stream that it has.
  logic [3:0]  done_late, refused_late;
  logic [6:0]  streams_late[4];
  logic [15:0] end_id;
  logic [31:0] end_start;
  logic        end_valid, ending;
  logic [3:0]  end_used, waiting_used;
  assign ending = done_late[3];
  always_ff @(posedge clk) begin
    done_late    <= rst ? '0 : {done_late[2:0], leaving.done};
    refused_late <= {refused_late[2:0], leaving.refused};
    streams_late[0] <= push;
    for (int i = 1; i < 4; i++) streams_late[i] <= streams_late[i-1];
  end
  stream_fifo #(.WIDTH(48), .LOG_DEPTH(3)) ends (
      .clk, .rst, .push(handed), .in({next_id, clock}), .used(end_used),
      .valid(end_valid), .ready(ending), .out({end_id, end_start})
  );

  logic        waiting_valid;
  logic [31:0] started;
  stream_fifo #(.WIDTH(312), .LOG_DEPTH(3)) waiting (
      .clk, .rst, .push(ending), .in({streams_late[3], end_id, refused_late[3], end_start, digest_c, digest_a}),
      .used(waiting_used), .valid(waiting_valid), .ready(completed),
      .out({owed, done_id, done_refused, started, done_c, done_a})
  );
  assign done_valid  = waiting_valid && (owed & ~ended) == 0;
  assign completed   = done_valid && done_ready;
  assign done_cycles = clock - started;

  always_ff @(posedge clk)
    if (rst) open <= '0;
    else open <= open + {3'b0, handed} - {3'b0, completed};
  assign idle = open == 0 && ring_empty;

  logic unused;
  assign unused = ^{unused_product, prior_valid, prior_used, end_valid, end_used, waiting_used, leaving};
endmodule
