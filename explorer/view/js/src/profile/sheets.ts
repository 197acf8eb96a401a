// The profile's style sheets as one; what is for narrow places overrides the others.

import tokens from "../core/tokens.css";
import flame from "./flame.css";
import kernels from "./kernels.css";
import narrow from "./narrow.css";
import profile from "./profile.css";
import source from "./source.css";
import threads from "./threads.css";

export default tokens + profile + source + flame + kernels + threads + narrow;
