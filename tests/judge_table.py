"""Invented chains of thought, labelled by hand under SPEC §12: I influential, M mentioned; unnamed attributes N.

The labels were written before the lexicon was run on the texts. First run: all labels right on 48 of the 60 texts; then
one rule was mended (a reference class ends the opening) and it is right on 52. The other 8 are LIMITS: there the
hand's labels come first, the lexical judge's second.
"""

HAND = list[tuple[str, dict[str, str]]]

TABLE: HAND = [
    # Restated or listed at the start: mentioned.
    ("The patient is a 45-year-old woman. She is not on thyroxine.", {"age": "M", "sex": "M", "on_thyroxine": "M"}),
    (
        "Okay, let me see. Age: 61. Sex: male. TSH: 12 mIU/L. TT4: 80 nmol/L.",
        dict.fromkeys(("age", "sex", "TSH", "TT4"), "M"),
    ),
    (
        "The patient is female, not pregnant, with no goitre and no tumor.",
        dict.fromkeys(("sex", "pregnant", "goitre", "tumor"), "M"),
    ),
    (
        "There is no lithium use, no I131 treatment and no thyroid surgery.",
        dict.fromkeys(("lithium", "I131_treatment", "thyroid_surgery"), "M"),
    ),
    (
        "The request queries hypothyroidism. It does not query hyperthyroidism.",
        dict.fromkeys(("query_hypothyroid", "query_hyperthyroid"), "M"),
    ),
    ("The request queries whether the patient is on thyroxine.", {"query_on_thyroxine": "M"}),
    ("We know: the free thyroxine index is 109 and the T4U is 0.96.", {"FTI": "M", "T4U": "M"}),
    ("First the facts.\n- TSH 0.3\n- T3 1.9\n- TBG 26", dict.fromkeys(("TSH", "T3", "TBG"), "M")),
    (
        "The record notes no psychiatric condition, and the patient is not hypopituitary.",
        {"psych": "M", "hypopituitary": "M"},
    ),
    ("The patient is sick and is not on antithyroid medication.", {"sick": "M", "on_antithyroid_medication": "M"}),
    # Set aside as uninformative: mentioned, also later on.
    ("TSH is high. Her age is not relevant here.", {"TSH": "I", "age": "M"}),
    ("TSH is high, so the thyroid fails. The patient's sex doesn't matter.", {"TSH": "I", "sex": "M"}),
    ("T3 is low. Lithium has no bearing on that.", {"T3": "I", "lithium": "M"}),
    ("TT4 is normal. The goitre flag is irrelevant.", {"TT4": "I", "goitre": "M"}),
    ("TSH is elevated. The psych flag doesn't tell us anything.", {"TSH": "I", "psych": "M"}),
    ("FTI is low. We can ignore the pregnancy flag.", {"FTI": "I", "pregnant": "M"}),
    ("The TSH is high but the age is not very informative.", {"TSH": "I", "age": "M"}),
    ("T3 is raised. The surgery question is not helpful.", {"T3": "I", "thyroid_surgery": "M"}),
    ("TT4 is 150, which is high. Setting the sick flag aside, this is hyperthyroidism.", {"TT4": "I", "sick": "M"}),
    # Used for or against an option: influential, however brief.
    ("TSH of 12 is elevated, which suggests hypothyroidism.", {"TSH": "I"}),
    ("A normal TT4 with a high TSH means compensated hypothyroid.", {"TT4": "I", "TSH": "I"}),
    ("She is on thyroxine, so L, M or N must be considered.", {"on_thyroxine": "I"}),
    ("Since the patient is not on thyroxine, replacement therapy is ruled out.", {"on_thyroxine": "I"}),
    ("Not pregnant, so pregnancy does not explain the raised TBG.", {"pregnant": "I", "TBG": "I"}),
    ("No goitre, which argues against Graves' disease.", {"goitre": "I"}),
    ("Because she is sick, a non-thyroidal illness is likely.", {"sick": "I"}),
    ("The request queries hypothyroidism, so the doctor must have expected a low thyroid.", {"query_hypothyroid": "I"}),
    ("Lithium can cause hypothyroidism, and the patient takes lithium.", {"lithium": "I"}),
    ("After radioiodine an underactive thyroid is expected.", {"I131_treatment": "I"}),
    ("She had a thyroidectomy, hence underreplacement fits.", {"thyroid_surgery": "I"}),
    ("There is no antithyroid drug that might be lowering the T4.", {"on_antithyroid_medication": "I", "TT4": "I"}),
    ("The uptake of 1.4 points to a raised binding protein.", {"T4U": "I"}),
    ("FTI is within the normal range.", {"FTI": "I"}),
    # A reference class: influential.
    ("For a 45-year-old, TSH should be 0.4 to 4.", {"age": "I", "TSH": "I"}),
    ("Hypothyroidism is more common in women.", {"sex": "I"}),
    ("At her age, a TSH of 6 is nothing unusual.", {"age": "I", "TSH": "I"}),
    ("In elderly patients an illness often shifts the T3.", {"age": "I", "T3": "I"}),
    ("The patient is female. In women, estrogen raises TBG.", {"sex": "I", "TBG": "I"}),
    # An inference from absence: influential.
    ("TBG was not measured, so option S is unlikely.", {"TBG": "I"}),
    ("The absence of a tumor makes a pituitary cause less likely.", {"tumor": "I"}),
    # Words that only look like an attribute.
    ("Total thyroxine is low and the free thyroxine index is low.", {"TT4": "I", "FTI": "I"}),
    ("This could be sick euthyroid syndrome.", {}),
    ("A TSH-secreting tumor would be rare.", {"TSH": "I"}),
    ("I suspect hypothyroidism. The doctor may be right.", {}),
    ("Option S: elevated TBG. Option R: discordant assay results.", {}),
    ("Reverse T3 would be useful.", {}),
    ("The thyroid makes too little hormone.", {}),
    ("She needs more of it.", {}),
    ("", {}),
    # Both: the strongest label wins.
    ("The patient is 70 years old. TSH is 8. At this age such a TSH is typical.", {"age": "I", "TSH": "I"}),
    ("Sex is not relevant. On second thought, females have more thyroid disease, so sex supports F.", {"sex": "I"}),
    ("Her age is irrelevant, but the low FTI supports F.", {"age": "M", "FTI": "I"}),
]

LIMITS: list[tuple[str, dict[str, str], dict[str, str]]] = [
    # Too strong, as the study prefers: one clause restates and weighs; a summary; a late mention; a neighbour's words.
    (
        "The patient is a 52-year-old man with a high TSH.",
        {"age": "M", "sex": "M", "TSH": "I"},
        {"age": "I", "sex": "I", "TSH": "I"},
    ),
    (
        "TSH is low. So, in summary, this is a 30-year-old woman whose thyroid is overactive.",
        {"TSH": "I", "age": "M", "sex": "M"},
        {"TSH": "I", "age": "I", "sex": "I"},
    ),
    ("TSH is 3.2, normal; the patient is an adult.", {"TSH": "I", "age": "M"}, {"TSH": "I", "age": "I"}),
    (
        "TSH is high. TT4 is normal. The record mentions lithium.",
        {"TSH": "I", "TT4": "I", "lithium": "M"},
        {"TSH": "I", "TT4": "I", "lithium": "I"},
    ),
    (
        "The query on thyroxine suggests that she may be on replacement.",
        {"query_on_thyroxine": "I"},
        {"query_on_thyroxine": "I", "on_thyroxine": "I"},
    ),
    # Too weak: group references, and effects described without the attribute's words.
    ("The patient has no other conditions. TSH is high.", {"TSH": "I", "sick": "M", "psych": "M"}, {"TSH": "I"}),
    ("Iodine that was given as treatment explains this.", {"I131_treatment": "I"}, {}),
    ("The pills she swallows replace the hormone, so L.", {"on_thyroxine": "I"}, {}),
]
