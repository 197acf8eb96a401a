// The viewer's style sheets as one, in the order in which a later rule overrides an earlier one.

import tokens from "../core/tokens.css";
import details from "../details/details.css";
import edges from "../graph/edges.css";
import graph from "../graph/graph.css";
import lines from "../lines/lines.css";
import memory from "../memory/memory.css";
import passesGraph from "../passes/graph.css";
import passesHistory from "../passes/history.css";
import passes from "../passes/passes.css";
import passesText from "../passes/text.css";
import source from "../source/source.css";
import text from "../text/text.css";
import why from "../why/why.css";
import diff from "./diff.css";
import foot from "./foot.css";
import saveMenu from "./save_menu.css";
import viewer from "./viewer.css";

const panes = [viewer, source, graph, edges, text, details, foot, memory, lines, why, saveMenu];

export default [tokens, ...panes, passes, passesText, passesGraph, passesHistory, diff].join("");
