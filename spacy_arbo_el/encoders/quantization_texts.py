"""Texts of several domains and languages, on which the scales of 8-bit layers are found."""

TEXTS = (
    "Mutations of the ATM gene in families with ataxia-telangiectasia raise the risk of breast "
    "cancer; 14 of 52 carriers (27 %) had a tumour before the age of 50.",
    "myocardial infarction",
    "hereditary nonpolyposis colorectal cancer, type 2",
    "Treatment with 5-fluorouracil caused nausea, hair loss and a fall in blood pressure from "
    "140/90 to 95/60 mmHg within 48 hours.",
    "CD4-positive, alpha-beta T cells of the lamina propria express IL-2 receptors.",
    "epithelial cell of proximal tubule",
    "The exon-intron boundary lies 120 bp upstream of the TATA box on chromosome 17q21.",
    "The bank said on Tuesday that it would buy its smaller rival for $3.2 billion, subject to "
    "approval by regulators in London and Brussels.",
    "Paris",
    "Acme Holdings Ltd.",
    "International Business Machines Corporation (IBM)",
    "Smith scored twice in the second half as the visitors beat Real Madrid 3-1 in the final.",
    "The river rises in the Black Forest, flows past Vienna and Budapest, and reaches the sea "
    "after 2,850 km.",
    "She was born in 1867 in Warsaw, studied physics, and was the first woman to win the prize.",
    "lol can't wait for the new season!! who else is watching tonight?",
    "We compare our parser with three neural baselines on the Penn Treebank and report F1.",
    "The film, directed by her brother, is about two friends who open a restaurant in Brooklyn.",
    "iPhone 15 Pro case, black, fits models A2848 and A3101, free shipping",
    "The court ruled that the contract between the parties was void under section 12(b).",
    "Die Firma mit Sitz in München liefert seit 1998 Ersatzteile für Lokomotiven.",
    "Le ministre a annoncé mardi une réforme de l'hôpital public à Marseille.",
    "La empresa chilena exporta vino y cobre a más de cuarenta países.",
    "Советский писатель родился в Москве в 1905 году.",
    "東京都は日本の首都である。",
    "مدينة القاهرة عاصمة مصر",
    "In the first episode the captain of the ship finds a map, which leads the crew to an island.",
    "diabetes mellitus",
    "a cell that is able to divide and give rise to neurons or glia",
    "any disease that affects the heart, the blood vessels, or both",
    "American football player, city in Ontario, album by the band of the same name",
    "The committee met again in Geneva, but no agreement on emissions was reached.",
    "Version 2.4.1 fixes a crash when the configuration file was empty (issue #1203).",
)
