// The S-box of FIPS 197.
package sbox_pkg;
  // Entry 255 first; entry x is SBOX[8 * x +: 8].
  localparam logic [2047:0] SBOX = {
      128'h16bb54b0_0f2d9941_6842e6bf_0d89a18c,
      128'hdf2855ce_e9871e9b_948ed969_1198f8e1,
      128'h9e1dc186_b9573561_0ef60348_66b53e70,
      128'h8a8bbd4b_1f74dde8_c6b4a61c_2e2578ba,
      128'h08ae7a65_eaf4566c_a94ed58d_6d37c8e7,
      128'h79e49591_62acd3c2_5c240649_0a3a32e0,
      128'hdb0b5ede_14b8ee46_88902a22_dc4f8160,
      128'h73195d64_3d7ea7c4_1744975f_ec130ccd,
      128'hd2f3ff10_21dab6bc_f5389d92_8f40a351,
      128'ha89f3c50_7f02f945_85334d43_fbaaefd0,
      128'hcf584c4a_39becb6a_5bb1fc20_ed00d153,
      128'h842fe329_b3d63b52_a05a6e1b_1a2c8309,
      128'h75b227eb_e2801207_9a059618_c323c704,
      128'h1531d871_f1e5a534_ccf73f36_2693fdb7,
      128'hc072a49c_afa2d4ad_f04759fa_7dc982ca,
      128'h76abd7fe_2b670130_c56f6bf2_7b777c63
  };
endpackage
