// Every page works without this. With it, what goes on is shown as it happens, and a study can be taken from
// a file.
"use strict";

// What needs this script is not shown without it.
for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;

// What is folded is printed whole; browsers that do so by the style sheet need no help.
if (!CSS.supports("selector(::details-content)")) {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });
}

// A file goes into a field, as if somebody had pasted it.
for (const input of document.querySelectorAll("input[data-into]")) {
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (file) document.getElementById(input.dataset.into).value = await file.text();
  });
}

// Parts that are live are taken from the page itself, asked for again when the service says that something
// has changed. Nobody who has gone home is kept signed in by it.
const IDLE_MS = 20 * 60 * 1000;
const EVERY_MS = 2000;
let stream = null, used = Date.now(), asked = 0, waiting = false;

function live() {
  return document.querySelectorAll("[data-live]");
}

function refresh() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    asked = Date.now();
    const request = new XMLHttpRequest();
    request.open("GET", location.pathname + location.search);
    request.responseType = "document";
    request.onload = () => {
      if (request.status !== 200 || !request.responseXML) return stop();
      for (const old of live()) {
        const now = request.responseXML.getElementById(old.id);
        // What somebody is at is left alone.
        if (now && !old.contains(document.activeElement) && now.textContent !== old.textContent) {
          old.replaceChildren(...document.importNode(now, true).childNodes);
        }
      }
      if (live().length === 0) stop();
    };
    request.send();
  }, Math.max(0, asked + EVERY_MS - Date.now()));
}

function stop() {
  if (stream) stream.close();
  stream = null;
}

function start() {
  if (stream || document.hidden || live().length === 0) return;
  stream = new EventSource("/events");
  stream.addEventListener("changed", () => {
    if (Date.now() - used > IDLE_MS) stop();
    else refresh();
  });
}

for (const kind of ["keydown", "pointerdown", "focus"]) {
  addEventListener(kind, () => {
    used = Date.now();
    start();
  }, true);
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stop();
  else start();
});
start();
