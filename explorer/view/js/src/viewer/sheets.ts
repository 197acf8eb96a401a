// The style sheets of a capture's frame and of what every capture shows.

import details from "../details/details.css";
import sheet from "../details/sheet.css";
import shares from "../lines/shares.css";
import overview from "../overview/overview.css";
import source from "../source/source.css";
import foot from "./foot.css";
import saveMenu from "./save_menu.css";

export default [overview, source, details, sheet, foot, shares, saveMenu].join("");
