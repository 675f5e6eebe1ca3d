# SPDX-License-Identifier: 0BSD
# Rows of bench.md to an SVG: bytes that a command writes, as bars to scale.
#     awk -f plot.awk bench.md > wear.svg
BEGIN {
    FS = " *[|] *"
    label["W1, granule 1, keys of 16 bytes"] = "idem.h, file or SPI NOR"
    label["W1, granule 8, keys of 16 bytes"] = "idem.h, granules of 8"
    label["W1, granule 16, keys of 16 bytes"] = "idem.h, granules of 16"
    label["W1, SQLite"] = "SQLite (WAL)"
    label["W1, LMDB"] = "LMDB"
}
sub(/: bytes of 1000 commands$/, "", $2) && $2 in label {
    bars++
    name[bars] = label[$2]
    bytes[bars] = $3 / 1000
    if (bytes[bars] > most)
        most = bytes[bars]
}
# 9999 as 9,999
function grouped(n) {
    return n < 1000 ? sprintf("%.0f", n) \
        : sprintf("%d,%03.0f", n / 1000, n % 1000)
}
END {
    print "<!-- SPDX-License-Identifier: 0BSD -->"
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" " \
        "height=\"%d\" font-family=\"sans-serif\" font-size=\"14\">\n" \
        "<title>Bytes written to storage for each command</title>\n" \
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n" \
        "<text x=\"12\" y=\"24\" font-weight=\"bold\">Bytes written to " \
        "storage for each command (claim and outcome)</text>\n", 44 + 28 * bars
    for (i = 1; i <= bars; i++) {
        width = 440 * bytes[i] / most
        printf "<text x=\"190\" y=\"%d\" text-anchor=\"end\">%s</text>\n" \
            "<rect x=\"200\" y=\"%d\" width=\"%.1f\" height=\"18\" " \
            "fill=\"%s\"/>\n<text x=\"%.1f\" y=\"%d\">%s</text>\n",
            26 + 28 * i, name[i], 12 + 28 * i, width,
            name[i] ~ /^idem/ ? "#1a7f37" : "#8c959f",
            206 + width, 26 + 28 * i, grouped(bytes[i])
    }
    print "</svg>"
}
