# SPDX-License-Identifier: 0BSD
# Draws rows of common.h's plot_row (series, label, median, least, most) as SVG.
#   awk -f plot.awk -v title="..." -v unit=ns -v kind=bars rows.tsv > plot.svg
# kind=bars   one bar for each series, in the rows' order; the scale is
#             logarithmic if one is fifty times another
# kind=lines  one line for each series over labels that are numbers: a
#             logarithmic scale; so is the other, but with log_scale=0
# Thin lines show the least and the most.
BEGIN {
    FS = "\t"
    split("#1f77b4 #ff7f0e #2ca02c #d62728 #9467bd #8c564b", color, " ")
}

{
    if (!($1 in seen)) {
        seen[$1] = ++series
        name[series] = $1
    }
    count++
    of[count] = seen[$1]
    x[count] = $2
    median[count] = $3
    least[count] = $4
    most[count] = $5
    if ($3 > top)
        top = $3
    if (!bottom || $3 < bottom)
        bottom = $3
    if (kind == "lines") {
        if (!left || $2 + 0 < left)
            left = $2 + 0
        if ($2 + 0 > right)
            right = $2 + 0
    }
}

# Where a value stands between 0 and 1
function scaled(value, low, high, logarithmic) {
    if (value < low)
        value = low
    if (value > high)
        value = high
    if (logarithmic)
        return (log(value) - log(low)) / (log(high) - log(low))
    return (value - low) / (high - low)
}

function text(px, py, anchor, words) {
    gsub(/&/, "\\&amp;", words)
    gsub(/</, "\\&lt;", words)
    printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
        px, py, anchor, words
}

function stroke(x1, y1, x2, y2, colour) {
    printf "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\"/>\n",
        x1, y1, x2, y2, colour
}

# A number in three digits
function short(value) {
    if (value >= 1e6)
        return sprintf("%.3gM", value / 1e6)
    if (value >= 1e4)
        return sprintf("%.3gk", value / 1e3)
    return value >= 100 ? sprintf("%.0f", value) : sprintf("%.3g", value)
}

function begin(height) {
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 %d\" " \
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n" \
        "<rect width=\"640\" height=\"%d\" fill=\"#fff\"/>\n", height, height
    text(12, 20, "start", title " (" unit (log_scale ? ", log scale" : "") ")")
}

function bars(    i, y, low, high, from, to) {
    log_scale = top > 50 * bottom
    low = log_scale ? bottom / 10 : 0
    high = top * 1.05
    begin(34 + 22 * count)
    for (i = 1; i <= count; i++) {
        y = 30 + 22 * (i - 1)
        text(204, y + 13, "end", name[of[i]])
        to = 364 * scaled(median[i], low, high, log_scale)
        printf "<rect x=\"210\" y=\"%d\" width=\"%.1f\" height=\"16\" " \
            "fill=\"%s\"/>\n", y, to,
            name[of[i]] ~ /^idem/ ? color[2] : color[1]
        from = 210 + 364 * scaled(least[i], low, high, log_scale)
        to = 210 + 364 * scaled(most[i], low, high, log_scale)
        stroke(from, y + 8, to, y + 8, "#333")
        text(588, y + 13, "start", short(median[i]))
    }
}

function lines(    i, s, px, py, path, low, high, ceiling, height) {
    low = log_scale ? bottom / 1.2 : 0
    high = top * 1.1
    ceiling = 34 + 16 * series
    height = 280 - ceiling
    begin(330)
    stroke(60, 280, 600, 280, "#999")
    stroke(60, ceiling, 60, 280, "#999")
    for (i = 1; i <= count; i++) {
        px = 60 + 540 * scaled(x[i], left, right, 1)
        py = 280 - height * scaled(median[i], low, high, log_scale)
        path[of[i]] = path[of[i]] (path[of[i]] ? "L" : "M") \
            sprintf("%.1f %.1f", px, py)
        if (of[i] == 1)
            text(px, 296, "middle", short(x[i]))
        if (x[i] + 0 == right)
            text(px + 4, py + 4, "start", short(median[i]))
        stroke(px, 280 - height * scaled(least[i], low, high, log_scale), px,
            280 - height * scaled(most[i], low, high, log_scale),
            color[(of[i] - 1) % 6 + 1])
    }
    text(330, 318, "middle", xtitle)
    text(54, 284, "end", short(low))
    text(54, ceiling + 6, "end", short(high))
    for (s = 1; s <= series; s++) {
        printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" " \
            "stroke-width=\"2\"/>\n", path[s], color[(s - 1) % 6 + 1]
        printf "<rect x=\"70\" y=\"%d\" width=\"12\" height=\"4\" " \
            "fill=\"%s\"/>\n", 20 + 16 * s, color[(s - 1) % 6 + 1]
        text(88, 26 + 16 * s, "start", name[s])
    }
}

END {
    if (!count)
        exit 1
    if (kind == "lines")
        lines()
    else
        bars()
    print "</svg>"
}
