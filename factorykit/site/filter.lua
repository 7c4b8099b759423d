-- What Quarto adds to pandoc's markdown, for the embedded renderer: numbered figures, tables and equations,
-- references to them, callouts, tab sets, and links between pages. One pass numbers, a second one refers.

local words = { fig = "Figure", tbl = "Table", eq = "Equation", sec = "Section" }
local callouts = { note = "Note", tip = "Tip", important = "Important", warning = "Warning", caution = "Caution" }
local counts = { fig = 0, tbl = 0, eq = 0 }
local targets = {} -- id -> inlines that name it
local tabsets, citations = 0, false
local nbsp = utf8.char(160)

local function html(text) return pandoc.RawBlock("html", text) end

local function kind_of(id)
  local kind = id:match("^(%a+)%-.")
  return words[kind] and kind or nil
end

local function number(id)
  local kind = kind_of(id)
  counts[kind] = counts[kind] + 1
  if targets[id] then io.stderr:write("[PAGE] " .. id .. ": two things carry this label\n") end
  targets[id] = pandoc.Inlines(words[kind] .. nbsp .. counts[kind])
  return pandoc.Span(words[kind] .. nbsp .. counts[kind] .. ": ", { class = "fk-number" })
end

-- A float made of any content: its caption is the last paragraph. Tables carry their caption above.
local function float(div, kind)
  local label = number(div.identifier)
  local content, caption = div.content, pandoc.Inlines({})
  local last = content[#content]
  if #content > 1 and last.t == "Para" then
    caption = last.content
    content:remove(#content)
  end
  caption:insert(1, label)
  local figcaption = pandoc.Blocks({ html("<figcaption>"), pandoc.Plain(caption), html("</figcaption>") })
  local blocks = pandoc.Blocks({ html('<figure id="' .. div.identifier .. '" class="fk-float fk-' .. kind .. '">') })
  blocks:extend(kind == "tbl" and figcaption or {})
  blocks:extend(content)
  blocks:extend(kind == "tbl" and {} or figcaption)
  blocks:insert(html("</figure>"))
  return blocks
end

local function callout(div, kind)
  local title = div.attributes.title and pandoc.utils.blocks_to_inlines(pandoc.read(div.attributes.title).blocks)
  if not title and div.content[1] and div.content[1].t == "Header" then
    title = div.content:remove(1).content
  end
  title = title or pandoc.Inlines(callouts[kind])
  local folded = div.attributes.collapse
  local class = ' class="callout callout-' .. kind .. '"'
  local open = folded and ("<details" .. class .. (folded == "false" and " open" or "") .. '><summary class="callout-title">')
    or ("<div" .. class .. '><p class="callout-title">')
  local blocks = pandoc.Blocks({ html(open), pandoc.Plain(title), html(folded and "</summary>" or "</p>") })
  blocks:insert(pandoc.Div(div.content, { class = "callout-body" }))
  blocks:insert(html(folded and "</details>" or "</div>"))
  return pandoc.Div(blocks)
end

local function tabset(div)
  tabsets = tabsets + 1
  local level, tabs = nil, {}
  for _, block in ipairs(div.content) do
    if block.t == "Header" and (not level or block.level == level) then
      level = block.level
      tabs[#tabs + 1] = { title = block.content, content = pandoc.Blocks({}) }
    elseif #tabs > 0 then
      tabs[#tabs].content:insert(block)
    end
  end
  local buttons, panels = pandoc.Blocks({ html('<div class="tabset-tabs" role="tablist">') }), pandoc.Blocks({})
  for i, tab in ipairs(tabs) do
    local id = tabsets .. "-" .. i
    buttons:insert(html(('<button type="button" role="tab" id="tab-%s" aria-controls="panel-%s" aria-selected="%s"%s>')
      :format(id, id, i == 1 and "true" or "false", i == 1 and "" or ' tabindex="-1"')))
    buttons:insert(pandoc.Plain(tab.title))
    buttons:insert(html("</button>"))
    panels:insert(html(('<div role="tabpanel" id="panel-%s" aria-labelledby="tab-%s">'):format(id, id)))
    panels:extend(tab.content)
    panels:insert(html("</div>"))
  end
  buttons:insert(html("</div>"))
  buttons:extend(panels)
  return pandoc.Div(buttons, { class = "tabset" })
end

local function equation(block)
  for i, inline in ipairs(block.content) do
    if inline.t == "Math" and inline.mathtype == "DisplayMath" then
      for j = i + 1, math.min(i + 2, #block.content) do
        local id = block.content[j].t == "Str" and block.content[j].text:match("^{#(eq%-[%w%-_]+)}[.,;:]?$")
        if id then
          number(id)
          local sign = pandoc.Span("(" .. counts.eq .. ")", { class = "fk-eqno" })
          block.content[i] = pandoc.Span({ inline, sign }, { id = id, class = "fk-equation" })
          for _ = i + 1, j do block.content:remove(i + 1) end
        end
      end
    end
  end
  return block
end

local root = "" -- the way from the page to the site's top, "../" or ""

local function target(url)
  if url:match("^%a[%w+.-]*:") or url:match("^//") then return url end
  if url:sub(1, 1) == "/" then url = root .. url:sub(2) end
  local path, rest = url:match("^([^#?]*)(.*)$")
  return path:gsub("%.qmd$", ".html"):gsub("%.ipynb$", ".html"):gsub("%.md$", ".html") .. rest
end

local mark = {
  Div = function(div)
    local kind = div.identifier ~= "" and kind_of(div.identifier)
    if kind == "fig" or kind == "tbl" then return float(div, kind) end
    for _, class in ipairs(div.classes) do
      local name = class:match("^callout%-(%a+)$")
      if callouts[name] then return callout(div, name) end
      if class == "panel-tabset" then return tabset(div) end
    end
  end,
  Figure = function(figure)
    if figure.identifier ~= "" and kind_of(figure.identifier) == "fig" then
      local label = number(figure.identifier)
      local long = figure.caption.long
      if #long == 0 then long = pandoc.Blocks({ pandoc.Plain({}) }) end
      long[1].content:insert(1, label)
      figure.caption.long = long
      figure.classes = { "fk-float", "fk-fig" }
      return figure
    end
  end,
  Table = function(tbl)
    if tbl.identifier ~= "" and kind_of(tbl.identifier) == "tbl" then
      local label = number(tbl.identifier)
      if #tbl.caption.long == 0 then tbl.caption.long = pandoc.Blocks({ pandoc.Plain({}) }) end
      tbl.caption.long[1].content:insert(1, label)
    end
    return pandoc.Div({ tbl }, { class = "fk-scroll" })
  end,
  Para = equation,
  Plain = equation,
  Header = function(header)
    if header.identifier:match("^sec%-") then targets[header.identifier] = header.content end
  end,
  Image = function(image)
    image.src = target(image.src)
    return image
  end,
  Link = function(link)
    link.target = target(link.target)
    return link
  end,
}

local refer = {
  Cite = function(cite)
    local first = cite.citations[1].id
    if not kind_of(first:lower()) then
      citations = true
      return nil
    end
    local out = pandoc.Inlines({})
    for i, citation in ipairs(cite.citations) do
      local id = citation.id:gsub("^%u", string.lower)
      if i > 1 then out:extend({ pandoc.Str(","), pandoc.Space() }) end
      if targets[id] then
        local named = targets[id]
        if citation.mode == "SuppressAuthor" then named = pandoc.Inlines(tostring(named[1].text):match("%d+$")) end
        out:insert(pandoc.Link(named, "#" .. id, "", { class = "quarto-xref" }))
      else
        out:insert(pandoc.Span({ pandoc.Strong("?@" .. id) }, { class = "quarto-unresolved-ref" }))
      end
    end
    return out
  end,
}

function Pandoc(doc)
  root = doc.meta["fk-root"] and pandoc.utils.stringify(doc.meta["fk-root"]) or ""
  doc = doc:walk(mark):walk(refer)
  if citations and doc.meta.bibliography then
    doc.blocks:insert(pandoc.Header(2, "References", { id = "references" }))
    doc.blocks:insert(pandoc.Div({}, { id = "refs" }))
  end
  return doc
end
