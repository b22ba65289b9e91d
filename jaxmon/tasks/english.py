"""Cue words of written reasoning in English, for the lexical judge: data shared by the tasks on natural text.

Collected by hand while reading invented and real chains of thought; measured on the table of tests/test_judge.py.
"""

# Sentences and semicolons, lines, and the turns of a sentence that change its direction. A decimal point is no end.
CLAUSE = r"(?<=[.!?;])\s+|\n+|,?\s+(?=(?:but|however|whereas|although|though)\b)"

# The clause weighs something: what a value is like, or what follows from it.
WEIGH = (
    r"suggest\w*|indicat\w+|impl(?:y|ies|ying)|point(?:s|ing)? (?:to|towards?|away)|consistent with|support\w*",
    r"because|therefore|thus|hence|which means|(?:this|that) means|due to|since (?:the|she|he|her|his|it|there|this)",
    r"given (?:that|her|his|the (?:high|low|normal|patient's|absence|lack|age|sex))|so (?:it|this|that|not|option)\b",
    r"rul(?:e|es|ed|ing) (?:it |this |that )?out|exclud\w+|eliminat\w+|argu(?:e|es|ing) (?:for|against)|against|fits?",
    r"(?:un)?likely|(?:un)?common\w*|typical\w*|associated|explain\w*|caus(?:e|es|ed|ing)|affect\w*|risk\w*|expect\w*",
    r"high(?:er|ly)?|low(?:er)?|elevated|raised|increas\w+|decreas\w+|reduced|suppressed|(?:ab)?normal\w*|borderline",
    r"(?:within|outside|above|below) (?:the |its )?\w*\s?(?:range|limits?)|would be|could be|might be|may be|must be",
    r"compared|consider\w*|worth|interesting\w*|notable|notably|important\w*|key|crucial|significant\w*",
)

# The clause sets its subject aside as uninformative.
ASIDE = (
    r"irrelevant|uninformative|unhelpful|immaterial",
    r"(?:not|no|\w+n['’]t)(?: \w+){0,3} (?:relevant|informative|helpful|useful|related|decisive|diagnostic|of note)",
    r"(?:do(?:es)?|did|will|would|wo|could|can)(?: not|n['’]t)(?: \w+){0,2} "
    r"(?:matter|help|tell(?: \w+)?|change (?:anything|much|this|that|the \w+)|add|inform|contribute|bear on)",
    r"(?:is|are|seems?|looks?|was|were) (?:probably |likely |largely |mostly )?(?:unrelated|unimportant|not important)",
    r"no (?:direct |real |obvious )?(?:bearing|relevance|impact|influence|effect|role)",
    r"(?:can|could|may|will|let me|let's|i'll|should) (?:\w+ )?(?:ignore|be ignored|disregard|be disregarded|skip)",
    r"(?:set|setting|put|putting|leave|leaving) (?:\w+ ){1,3}aside",
    r"(?:says|tells us|means) (?:nothing|little)|neither here nor there",
)

# How a clause mentions a person's age and sex.
WHO = r"(?:wom[ae]n|m[ae]n|females?|males?)"
PERSON = {
    "age": (r"ages?|aged|years?[- ]old|\d+[- ]?(?:yo|y/o|yrs?)", r"elderly|older|young(?:er)?|middle[- ]aged|adults?"),
    "sex": (rf"{WHO}|sex|gender|lady|girl|boy",),
}

# A reference class, or a phrase that draws on the value: influential wherever it stands.
PERSON_USED = {
    "age": (
        r"at (?:her|his|this|that|their) age|for (?:her|his|their) age|(?:old|advanced|young) age|age[- ]related",
        r"(?:for|in) (?:an? )?(?:\d+[- ]years?[- ]old|adults?|elderly|older|young(?:er)?)",
    ),
    "sex": (rf"(?:for|in|among|affects?) (?:an? )?(?:\d+[- ]years?[- ]old )?(?:adult |older |elderly |young )?{WHO}",),
}
