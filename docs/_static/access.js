// What the theme leaves out for people who use keys or a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  const all = (what, work) => document.querySelectorAll(what).forEach(work);
  all(".caption[role='heading']", (one) => one.setAttribute("aria-level", "2"));
  all("aside", (one) => one.setAttribute("aria-label", one.className.includes("toc") ? "On this page" : "All pages"));
  all(".content-icon-container", (one) => { one.setAttribute("role", "region"); one.setAttribute("aria-label", "Page tools"); });
  all("th", (one) => one.textContent.trim() || one.replaceWith(Object.assign(document.createElement("td"), { className: one.className })));
  all("code.literal .pre", (one) => one.replaceChildren(...one.textContent.split(/(?<=[._(,=/[])(?=\w)/).flatMap((part, i) => {
    const whole = Object.assign(document.createElement("span"), { textContent: part });
    return i ? [document.createElement("wbr"), whole] : [whole];
  })));
  const reach = () => {
    all("article table.docutils", (one) => { // words break only in a table that does not fit
      one.classList.remove("tight");
      one.classList.toggle("tight", one.offsetWidth > one.parentElement.clientWidth + 1);
    });
    all("pre, .table-wrapper, p:has(> img)", (one) => {
      if (one.scrollWidth > one.clientWidth) one.tabIndex = 0; else one.removeAttribute("tabindex");
    });
  };
  reach();
  for (const event of ["load", "resize"]) addEventListener(event, reach);
});
