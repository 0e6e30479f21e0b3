// What the blocks of the accelerator say to each other.
package accel_pkg;

  // Operations of a descriptor; 0 adds.
  localparam logic [1:0] OP_SUB = 2'd1;
  localparam logic [1:0] OP_MULTIPLY = 2'd2;
  localparam logic [1:0] OP_FOLD = 2'd3;

  // What the elements of a block are.
  localparam logic [1:0] Z128 = 2'd0;
  localparam logic [1:0] Z64 = 2'd1;
  localparam logic [1:0] Z2 = 2'd2;

  // Uses of streams, as crates/accel/src/streams.rs numbers them.
  localparam logic [7:0] USE_MASK = 8'd1;
  localparam logic [7:0] USE_WIRE = 8'd2;

  // Cycles between the stages of the pipeline; no stage ever waits.
  localparam int MUL_CYCLES = 6;   // mul_ring
  localparam int CROSS_CYCLES = 9; // operands to accumulated products
  localparam int AES_CYCLES = 21;  // counter to mask

  // Blocks of a digest that are in flight: the interleaving.
  localparam int LANES = 4;

  // What travels with a beat.
  typedef struct packed {
    logic       active;     // operands came with this beat
    logic       valid;      // a result leaves with this beat
    logic       done;       // the command ends with this beat
    logic       refused;    // the descriptor made no sense: nothing was read or written
    logic       multiply;
    logic       fold;
    logic       subtract;
    logic [1:0] ring;
    logic       sends;      // this seat sends its C
    logic       receives;   // this seat receives the C of the seat after it
    logic       masked;
    logic       digest;
    logic       expose;
    logic       first_term; // the sum starts here
    logic       first;      // first block of the command
    logic       fresh;      // one of the first LANES blocks
    logic [2:0] left;       // blocks to come, with this one; 0: more than LANES
  } ctl_t;
  localparam int CTL_BITS = 20;

endpackage
