// Rules for the scripts of the page and the report: what is an error, and nothing about layout.
const browser = Object.fromEntries(
  [
    "AbortController", "Blob", "CSS", "CustomEvent", "Event", "EventSource", "FileReader", "FormData",
    "HTMLElement", "Intl", "IntersectionObserver", "MutationObserver", "Node", "ResizeObserver",
    "URL", "URLSearchParams", "clearInterval", "clearTimeout", "confirm", "console", "document",
    "fetch", "getComputedStyle", "history", "localStorage", "location", "matchMedia", "navigator",
    "performance", "requestAnimationFrame", "sessionStorage", "setInterval", "setTimeout", "window",
    "structuredClone", "queueMicrotask", "devicePixelRatio", "innerWidth", "innerHeight", "alert", "atob",
  ].map((name) => [name, "readonly"]),
);

const rules = {
  "no-undef": "error",
  "no-unused-vars": "error",
  "no-dupe-keys": "error",
  "no-unreachable": "error",
  "no-fallthrough": "error",
  "no-implied-eval": "error",
  "no-eval": "error",
  "no-self-assign": "error",
  "no-const-assign": "error",
  "no-redeclare": "error",
  "use-isnan": "error",
  "valid-typeof": "error",
  "prefer-const": "error",
  eqeqeq: ["error", "always", { null: "ignore" }],
};

export default [
  {
    files: ["**/page/static/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: browser },
    rules,
  },
  {
    files: ["**/report/templates/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "script", globals: browser },
    rules: { ...rules, "no-unused-vars": "off" },
  },
];
