// The GENEB board. Data come as scripts (board-data.js and parts), so the page works from a disk.

import { base } from "./data/board.js";
import { buildControls } from "./page/controls.js";
import { fail, show } from "./page/draw.js";
import { watch } from "./state/store.js";

if (base) {
  buildControls();
  watch(show);
} else {
  fail("The data of the board, board-data.js, could not be loaded");
}
