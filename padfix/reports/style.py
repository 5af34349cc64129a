"""How an HTML report looks: light, dark, on a phone and on paper."""

from padfix.reports.pictures import svg

_PAGE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1f2328;--faint:#59636e;--line:#d1d9e0;--soft:#f6f8fa;
--good:#1a6b36;--good-soft:#e6f4ea;--bad:#a40e26;--bad-soft:#fdecee;--warn:#7a4d00;--warn-soft:#fff4d6;
--info:#2b5797;--info-soft:#eaf2fd;--link:#0b3d91}
@media(prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e6e8eb;--faint:#a5afba;--line:#3a4048;--soft:#1f2329;
--good:#7fd49b;--good-soft:#16301f;--bad:#ff9a92;--bad-soft:#3a1a1c;--warn:#f0c060;--warn-soft:#33280f;
--info:#8ab4ff;--info-soft:#182538;--link:#8ab4ff}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,sans-serif;margin:0 auto;max-width:72rem;padding:1rem;
background:var(--paper);color:var(--ink)}
a{color:var(--link)}
h1{font-size:1rem;font-weight:600;color:var(--faint);margin:0 0 .25rem}
h2{font-size:1.25rem;margin:2rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.5rem 0 .25rem}h4{font-size:1rem;margin:1rem 0 .25rem}
h1,h2,h3,h4,p,li,dd,code,figcaption,summary{overflow-wrap:anywhere}td{overflow-wrap:break-word}p{margin:.5rem 0}
:target{outline:2px solid var(--link);outline-offset:3px;border-radius:.5rem}
header{border:1px solid var(--line);border-left:.5rem solid var(--faint);border-radius:.5rem;padding:1rem 1.25rem;
background:var(--soft)}
header.good{border-left-color:var(--good);background:var(--good-soft)}
header.bad,header.silent,header.error{border-left-color:var(--bad);background:var(--bad-soft)}
header.warning{border-left-color:var(--warn);background:var(--warn-soft)}
header.info{border-left-color:var(--info);background:var(--info-soft)}
header strong{font-size:1.35rem;line-height:1.3}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.75rem 0 0;font-size:.9rem}
dt{color:var(--faint)}dd{margin:0}
p.good,ul.good{color:var(--good)}p.bad,ul.bad,p.silent,p.error{color:var(--bad)}p.warning{color:var(--warn)}p.info{color:var(--info)}
.counts{display:flex;flex-wrap:wrap;gap:.4rem;margin:.75rem 0 0}
mark{display:inline-block;border:1px solid currentColor;border-radius:1rem;padding:0 .6rem;font-size:.85rem;
font-weight:600;white-space:nowrap;background:var(--paper);color:var(--ink)}
mark.yes,mark.good{background:var(--good-soft);color:var(--good)}
mark.warning{background:var(--warn-soft);color:var(--warn)}mark.info{background:var(--info-soft);color:var(--info)}
mark.silent,mark.error,mark.no,mark.bad{background:var(--bad-soft);color:var(--bad)}
.rows{overflow:auto;max-height:32rem;border:1px solid var(--line);border-radius:.5rem;margin:.75rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.35rem .6rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
th{position:sticky;top:0;background:var(--soft);border-top:0}tbody tr:nth-child(even){background:var(--soft)}
article{display:flex;flex-wrap:wrap;gap:0 1.5rem;border:1px solid var(--line);border-left:.3rem solid var(--faint);
border-radius:.5rem;padding:.6rem 1rem;margin:.75rem 0}
article.silent,article.error{border-left-color:var(--bad)}article.warning{border-left-color:var(--warn)}
article.info{border-left-color:var(--info)}
article>div{flex:1 1 25rem;min-width:0}article h4{margin:0 0 .25rem}article h4 b{font-weight:400;color:var(--faint)}
article .remark{color:var(--faint);font-size:.9rem}
.sides{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr));gap:.5rem;margin:.5rem 0}
.sides>div{border:1px solid var(--line);border-radius:.5rem;overflow:hidden}
.sides>div>span{display:block;padding:.1rem .6rem;font-size:.8rem;font-weight:600;
background:var(--soft);color:var(--faint);border-bottom:1px solid var(--line)}
.sides code{border:0;border-radius:0;background:none;padding:.3rem .6rem .3rem 1.6rem;text-indent:-1rem}
.setting{display:inline-block;text-indent:0}del,ins{text-decoration:none;font-weight:700;border-radius:.2rem;
padding:0 .15rem}
del{background:var(--bad-soft);color:var(--bad)}ins{background:var(--good-soft);color:var(--good)}
figure{display:inline-block;
margin:.5rem 1.5rem .5rem 0;max-width:100%;vertical-align:top;overflow-x:auto}
svg{display:block}article figure{flex:0 1 auto}
figcaption{font-size:.9rem;color:var(--faint);margin-bottom:.25rem}
.list{display:inline-block;max-width:100%;max-height:40rem;overflow:auto;border:1px solid var(--line);
border-radius:.5rem;padding:.5rem .75rem}.list svg{width:30rem}
details{margin:.5rem 0}main>details,section>details{border:1px solid var(--line);border-radius:.5rem;padding:.5rem 1rem}
summary{cursor:pointer;font-weight:600}article summary{font-weight:400;font-size:.9rem;color:var(--link)}
article ul{margin:.25rem 0;padding-left:1.25rem;font-size:.9rem;columns:18rem;max-height:20rem;overflow:auto}
code{display:block;font-size:.85rem;padding:.5rem .75rem;border-radius:.5rem;background:var(--soft);
border:1px solid var(--line)}
@media(max-width:40rem){body{padding:.5rem}header{padding:.75rem}dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}
header strong{font-size:1.15rem}.rows{max-height:none;border:0}.rows tr:first-child{display:none}
table,tbody,tr,td{display:block}.rows tr{border:1px solid var(--line);border-radius:.5rem;margin:.5rem 0}
td{border:0;padding:.1rem .6rem}
td:not(:first-child){display:inline-block}td:before{content:attr(data-head)": ";color:var(--faint)}
td:empty{display:none}}
@media print{:root{font-size:10px}body{max-width:none;padding:0;font-size:1rem}
article svg{width:auto;height:70mm!important}.rows,.list,article ul{max-height:none;overflow:visible}
th{position:static}article,figure,tr,dl,p{break-inside:avoid}h2,h3,h4,section>p{break-after:avoid}mark{border:1px solid}
header,mark,del,ins,code,.pf{print-color-adjust:exact}
details::details-content{content-visibility:visible;block-size:auto}summary{list-style:none}}
"""

STYLE = f"{_PAGE}{svg.STYLE}".replace("\n", "")
