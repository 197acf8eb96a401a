// The ledger's style sheets as one; what is for narrow places overrides the others.

import tokens from "../core/tokens.css";
import args from "./arguments.css";
import functions from "./functions.css";
import ledger from "./ledger.css";
import narrow from "./narrow.css";
import timeline from "./timeline.css";

export default tokens + ledger + timeline + functions + args + narrow;
