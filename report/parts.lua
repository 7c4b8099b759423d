-- `::: {from="report/_numbers.qmd"}` takes in what was printed before pages are rendered. The shortcode `include` cannot:
-- Quarto reads it before anything is printed, and a clone in which nothing was printed yet would not render.
function Div(div)
  if not div.attributes.from then return end
  local file = io.open(div.attributes.from)
  if not file then error(div.attributes.from .. " is missing; factorykit prints it before pages are rendered") end
  local text = file:read("a")
  file:close()
  return pandoc.read(text, "markdown").blocks
end
