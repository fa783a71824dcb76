// The board. Data come as scripts (board-data.DIGEST.js, parts), so it works from a disk.

import { base } from "./data/board.js";
import { missingData } from "./data/parts.js";
import { buildControls } from "./page/controls.js";
import { fail, refit, show } from "./page/draw.js";
import { watch } from "./state/store.js";

if (base) {
  buildControls();
  watch(show);
  addEventListener("resize", refit);
} else {
  missingData().then((error) => fail(error));
}
