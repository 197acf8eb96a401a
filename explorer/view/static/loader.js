// Inside each output: turns the static picture into the viewer. `ID`, `VERSION` and `ALPHABET` are set before this text.
// It runs wherever an output lands: a notebook's page, an editor's webview, an iframe, a file. So the viewer starts as a
// script written into the page, which is allowed wherever this one was; blob: addresses, which are often forbidden, come
// second.

const VALUE = new Uint8Array(128);
for (let i = 0; i < 85; i++) VALUE[ALPHABET.charCodeAt(i)] = i;

// Five letters are four bytes; of the last ones, as many letters are missing as bytes.
const unpack = (text) => {
  const values = new Uint8Array(Math.ceil(text.length / 5) * 4);
  const view = new DataView(values.buffer);
  for (let i = 0; i < text.length; i += 5) {
    let value = 0;
    for (let k = i; k < i + 5; k++) value = value * 85 + (k < text.length ? VALUE[text.charCodeAt(k)] : 84);
    view.setUint32((i / 5) * 4, value);
  }
  return values.subarray(0, Math.floor((text.length * 4) / 5));
};

const written = (code) =>
  new Promise((resolve, reject) => {
    const ready = `explorer-viewer-${VERSION}`;
    const forbidden = ({ blockedURI }) => {
      if (blockedURI === "inline") reject(new Error("this page allows no script of its own"));
    };
    window.addEventListener(ready, ({ detail }) => resolve(detail), { once: true });
    document.addEventListener("securitypolicyviolation", forbidden);
    setTimeout(() => reject(new Error("it does not answer")), 10000);
    const script = document.createElement("script");
    script.type = "module";
    script.textContent = code.replace(
      /export\s*\{[^}]*?([\w$]+) as mount\s*\};?\s*$/,
      (_, mount) => `window.dispatchEvent(new CustomEvent("${ready}", { detail: { mount: ${mount} } }))`,
    );
    document.head.append(script);
    script.remove();
  });

const imported = (code) => import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));

const load = async (text) => {
  const stream = new Blob([unpack(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const code = await new Response(stream).text();
  return written(code).catch((reason) =>
    imported(code).catch(() => {
      throw reason;
    }),
  );
};

const viewers = (window.explorerViewers ??= new Map());
const CARRIED = `[data-part="viewer"][data-version="${VERSION}"]`;

// The viewer, running already or from its text: in this output, in another one of the page, or from the kernel.
const viewer = async (host, waiting) => {
  let asked = false;
  for (let turn = 0; !viewers.has(VERSION); turn++) {
    const carrier = host.querySelector(CARRIED) ?? document.querySelector(CARRIED);
    const wire = window.explorerModels?.get(ID);
    if (carrier) viewers.set(VERSION, load(carrier.textContent));
    else if (wire && !asked) {
      asked = true;
      wire.on("msg:custom", ({ viewer: text }) => {
        if (text && !viewers.has(VERSION)) viewers.set(VERSION, load(text));
      });
      wire.send({ ask: "viewer" });
    }
    if (turn === 5) waiting();
    if (!viewers.has(VERSION)) await new Promise((next) => setTimeout(next, 300));
  }
  return viewers.get(VERSION);
};

for (const host of document.querySelectorAll(`[data-explorer="${ID}"]:not([data-started])`)) {
  host.dataset.started = "";
  void start(host);
}

async function start(host) {
  const fallback = host.querySelector(".explorer-static");
  const place = document.createElement("div");
  const note = document.createElement("p");
  const say = (text) => {
    note.textContent = text;
    fallback.append(note);
  };
  // A newer output of what is shown already: that stays in sight while the new data is read.
  const shown = window.explorerLedgers?.get(ID)?.find(({ root }) => !root.isConnected);
  if (shown) {
    fallback.hidden = true;
    place.append(shown.root);
    host.append(place);
  }
  try {
    const { mount } = await viewer(host, () => say("The interactive view is in another output of this notebook, not shown yet; running this cell again brings it, too."));
    host.append(place);
    await mount(place, unpack(host.querySelector('[data-part]:not([data-part="viewer"])').textContent), { id: ID });
    fallback.hidden = true;
    fit(host);
  } catch (error) {
    place.remove();
    fallback.hidden = false;
    say(`The interactive view could not start: ${error.message ?? error}`);
  }
}

// An iframe around this output alone was made as high as the picture.
function fit(host) {
  let frame = null;
  try {
    frame = window.frameElement;
  } catch {
    return; // another site's page is around it, and sees to its frames itself
  }
  const isAlone = [...document.body.children].every((child) => child === host || child.matches("script, style"));
  if (frame && isAlone) frame.style.height = `${document.documentElement.scrollHeight}px`;
}
