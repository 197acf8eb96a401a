// The style sheets of a capture's frame and of what every capture shows.

import details from "../details/details.css";
import sheet from "../details/sheet.css";
import lines from "../lines/lines.css";
import overview from "../overview/overview.css";
import source from "../source/source.css";
import foot from "./foot.css";
import help from "./help.css";
import saveMenu from "./save_menu.css";

export default [overview, source, details, sheet, foot, help, lines, saveMenu].join("");
