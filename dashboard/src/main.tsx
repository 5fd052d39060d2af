import { render } from "preact";
import { App } from "./app.tsx";
import { applyScheme } from "./ui/scheme.tsx";

applyScheme();
const place = document.getElementById("page");
if (place !== null) render(<App />, place);
