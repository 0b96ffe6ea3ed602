// page: what the stand-in does.
const Page = (() => {
  const models = async () => (await fetch("v1/models")).json();
  return { models };
})();

Page.models().then((all) => {
  document.querySelector("main").textContent = JSON.stringify(all);
});
