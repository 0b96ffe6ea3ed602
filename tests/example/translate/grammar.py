"""grammar: pairs of sentences, English and French, as the model that translates learns them.

They have what a translation word by word gets wrong: adjectives behind their noun, which agree with it; "the girl 's
dog", which is "le chien de la fille"; "ne ... pas" around the verb, and pronouns before it; "au" and "du"; words that
lose their vowel before another one. A question has three forms, and two of them begin alike: the likeliest first word is
not that of the likeliest form.
"""
import collections
import math
import random

# English, French, gender; plurals where they are not made with an s.
PEOPLE = """cat chat m | dog chien m | boy garçon m | girl fille f | man,men homme m | woman,women femme f | king roi m
child,children enfant m | queen reine f | student étudiant m | bird oiseau,oiseaux m | horse cheval,chevaux m | cow vache f
mouse,mice souris,souris f | friend ami m | doctor médecin m | sister sœur f | brother frère m | mother mère f"""
THINGS = """apple pomme f | book livre m | letter lettre f | house maison f | car voiture f | flower fleur f
tree arbre m | table table f | chair chaise f | orange orange f | key clé f | door porte f | hat chapeau,chapeaux m
cake gâteau,gâteaux m | ball ballon m | picture image f | boat bateau,bateaux m | window fenêtre f"""
PLACES = """garden jardin m | forest forêt f | school école f | kitchen cuisine f | street rue f | church,churches église f
town ville f | room chambre f"""

# English, French of one man; of one woman, where that is not made with an e.
BEFORE = "big grand | small petit | young jeune | pretty joli | good bon,bonne | bad mauvais"
BEHIND = """black noir | white blanc,blanche | red rouge | green vert | blue bleu | happy content | sad triste | strong fort
rich riche | tired fatigué | grey gris | quick rapide | round rond | empty vide"""

# English: now, of one, in the past; French: je, tu, il, nous, ils; the infinitive; the participle.
ACTIONS = """see sees saw : vois vois voit voyons voient voir vu
love loves loved : aime aimes aime aimons aiment aimer aimé
find finds found : trouve trouves trouve trouvons trouvent trouver trouvé
buy buys bought : achète achètes achète achetons achètent acheter acheté
take takes took : prends prends prend prenons prennent prendre pris
draw draws drew : dessine dessines dessine dessinons dessinent dessiner dessiné
look+for looks+for looked+for : cherche cherches cherche cherchons cherchent chercher cherché
wash washes washed : lave laves lave lavons lavent laver lavé
forget forgets forgot : oublie oublies oublie oublions oublient oublier oublié
hear hears heard : entends entends entend entendons entendent entendre entendu
wait+for waits+for waited+for : attends attends attend attendons attendent attendre attendu
follow follows followed : suis suis suit suivons suivent suivre suivi"""
GIFTS = """give gives gave : donne donnes donne donnons donnent donner donné
show shows showed : montre montres montre montrons montrent montrer montré
sell sells sold : vends vends vend vendons vendent vendre vendu"""
STATES = """sleep sleeps slept : dors dors dort dormons dorment dormir dormi
sing sings sang : chante chantes chante chantons chantent chanter chanté
dance dances danced : danse danses danse dansons dansent danser dansé
run runs ran : cours cours court courons courent courir couru
laugh laughs laughed : ris ris rit rions rient rire ri
swim swims swam : nage nages nage nageons nagent nager nagé
work works worked : travaille travailles travaille travaillons travaillent travailler travaillé
cry cries cried : pleure pleures pleure pleurons pleurent pleurer pleuré"""

# English, French; which of the five forms of a verb; gender and number of adjectives.
PRONOUNS = [("i", "je", 0, "m", False), ("you", "tu", 1, "m", False), ("he", "il", 2, "m", False),
            ("she", "elle", 2, "f", False), ("we", "nous", 3, "m", True), ("they", "ils", 4, "m", True)]
OBJECTS = {"him": "le", "her": "la", "them": "les"}
WHERE = {"in": "dans", "behind": "derrière", "in front of": "devant", "near": "près de"}
HAVE, GO = "ai as a avons ont".split(), "vais vas va allons vont".split()
IS, WAS = "suis es est sommes sont".split(), "étais étais était étions étaient".split()
ADVERBS = {"often": "souvent", "always": "toujours", "never": "jamais"}
DETERMINERS = {"the": ("le", "la", "les"), "a": ("un", "une", "des"), "this": ("ce", "cette", "ces"),
               "my": ("mon", "ma", "mes")}
QUESTIONS = (0.44, 0.28, 0.28)  # how often: "est-ce qu' il dort", "dort -il", "il dort"

Noun = collections.namedtuple("Noun", "english french gender")  # two of english, french: of one, of many
Adjective = collections.namedtuple("Adjective", "english french before")  # french: {gender: of one}
Verb = collections.namedtuple("Verb", "english forms infinitive participle")
# Of a noun, or a pronoun; `person` is the form of its verb.
Phrase = collections.namedtuple("Phrase", "english french person gender many pronoun")


def entries(text):
    return [entry.split() for line in text.splitlines() for entry in line.split("|")]


def nouns(text):
    def both(word):
        one, _, many = word.partition(",")
        return one, many or one + "s"
    return [Noun(both(english), both(french), gender) for english, french, gender in entries(text)]


def adjectives(text, before):
    def both(word):
        man, _, woman = word.partition(",")
        return {"m": man, "f": woman or (man if man.endswith("e") else man + "e")}
    return [Adjective(english, both(french), before) for english, french in entries(text)]


def verbs(text):
    found = []
    for line in text.splitlines():
        english, _, french = line.partition(" : ")
        forms = french.split()
        found.append(Verb([words.replace("+", " ") for words in english.split()], forms[:5], *forms[5:]))
    return found


PEOPLE, THINGS, PLACES = nouns(PEOPLE), nouns(THINGS), nouns(PLACES)
ADJECTIVES = adjectives(BEFORE, True) + adjectives(BEHIND, False)
ACTIONS, GIFTS, STATES = verbs(ACTIONS), verbs(GIFTS), verbs(STATES)


def vowel(words):
    """Does a word lose its own vowel before these?"""
    return words[0] in "aeiouéêâôh"


def shortened(word, behind):
    """je, ne, le, la, que, de before a vowel."""
    return word[:-1] + "'" if word in ("je", "ne", "le", "la", "que", "de") and vowel(behind) else word


def agreeing(adjective, gender, many):
    word = adjective.french[gender]
    return word + "s" if many and word[-1] not in "sx" else word


def determiner(word, gender, many, behind, adjective_first):
    if many:
        return "de" if word == "a" and adjective_first else DETERMINERS[word][2]
    if word in ("this", "my") and vowel(behind):
        return "cet" if (word, gender) == ("this", "m") else "cette" if word == "this" else "mon"
    return shortened(DETERMINERS[word]["mf".index(gender)], behind)


def joined(preposition, french):
    """de or à and what is behind it: du, des, au, aux."""
    first, _, rest = french.partition(" ")
    short = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}.get((preposition, first))
    return f"{short} {rest}" if short else f"{shortened(preposition, french)} {french}"


class Speaker:
    """Makes sentences of a random.Random."""

    def __init__(self, rng):
        self.rng = rng

    def chance(self, probability):
        return self.rng.random() < probability

    def phrase(self, choice, owned=True, plain=False):
        """A noun with what belongs to it."""
        noun, many = self.rng.choice(choice), self.chance(0.35)
        adjective = None if plain or self.chance(0.5) else self.rng.choice(ADJECTIVES)
        owner = self.phrase(PEOPLE, False, True) if owned and self.chance(0.2) else None
        if owner and owner.many:
            owner = None
        word = "the" if owner else self.rng.choice(["the", "the", "a", "this", "my"])
        english, french = [noun.english[many]], [noun.french[many]]
        if adjective:
            english.insert(0, adjective.english)
            french.insert(0 if adjective.before else 1, agreeing(adjective, noun.gender, many))
        first = determiner(word, noun.gender, many, french[0], adjective is not None and adjective.before)
        if owner:
            english.insert(0, owner.english + " 's")
            french.append(joined("de", owner.french))
        else:
            english.insert(0, {"a": "some", "this": "these"}.get(word, word) if many else word)
            if english[0] == "a" and english[1][0] in "aeio":
                english[0] = "an"
        return Phrase(" ".join(english), " ".join([first] + french), 4 if many else 2, noun.gender, many, False)

    def subject(self):
        if self.chance(0.3):
            return Phrase(*self.rng.choice(PRONOUNS), True)
        return self.phrase(PEOPLE)

    def predicate(self):
        """(the verb, or None for "to be"; what is behind it in English, in French; a pronoun before it in French)"""
        kind = self.rng.random()
        if kind < 0.35:
            if self.chance(0.25):
                english = self.rng.choice(list(OBJECTS))
                return self.rng.choice(ACTIONS), english, "", OBJECTS[english]
            what = self.phrase(self.rng.choice([PEOPLE, THINGS, THINGS]))
            return self.rng.choice(ACTIONS), what.english, what.french, ""
        if kind < 0.5:
            what, whom = self.phrase(THINGS, False), self.phrase(PEOPLE, False, self.chance(0.7))
            english = f"{what.english} to {whom.english}" if self.chance(0.5) else f"{whom.english} {what.english}"
            return self.rng.choice(GIFTS), english, f"{what.french} {joined('à', whom.french)}", ""
        if kind < 0.75:
            if self.chance(0.4):
                return self.rng.choice(STATES), "", "", ""
            english, place = self.rng.choice(list(WHERE)), self.phrase(PLACES, False)
            where, _, of = WHERE[english].partition(" ")
            french = f"{where} {joined(of, place.french) if of else place.french}"
            return self.rng.choice(STATES), f"{english} {place.english}", french, ""
        return None, "", "", ""

    def adverb(self):
        """(in English, in French): "not", or when."""
        kind = self.rng.random()
        if kind < 0.25:
            return "not", "pas"
        return self.rng.choice(list(ADVERBS.items())) if kind < 0.45 else ("", "")

    def pair(self, form=None):
        """(English, French). Of a question's forms the one that is asked for, or any."""
        subject, (verb, english, french, before) = self.subject(), self.predicate()
        tense = self.rng.choice(["now", "now", "past", "future"] if not before else ["now", "future"])
        adverb = self.adverb()
        question = subject.person in (2, 4) and self.chance(0.2)
        drawn = self.rng.choices((0, 1, 2), QUESTIONS)[0]
        if verb is None:
            what = self.rng.choice(ADJECTIVES)
            french, tense = agreeing(what, subject.gender, subject.many), "past" if tense == "past" else "now"
            said = self.be(subject, what.english, tense, adverb[0], question)
            words = [(WAS if tense == "past" else IS)[subject.person]]
        else:
            said = self.act(subject, verb, english, tense, adverb[0], question)
            words = {"now": [verb.forms[subject.person]], "past": [HAVE[subject.person], verb.participle],
                     "future": [GO[subject.person], verb.infinitive]}[tense]
        form = (drawn if form is None else form) if question else None
        return said, self.french(subject, words, before, adverb[1], french, form)

    @staticmethod
    def be(subject, what, tense, adverb, question):
        number = 0 if subject.english == "i" else 1 if subject.many or subject.english == "you" else 2
        is_ = (("was", "were", "was") if tense == "past" else ("am", "are", "is"))[number]
        parts = [is_, subject.english] if question else [subject.english, is_]
        return " ".join(word for word in [*parts, adverb, what, "?" if question else "."] if word)

    @staticmethod
    def act(subject, verb, behind, tense, adverb, question):
        one = subject.person == 2
        help_ = {"now": "does" if one else "do", "past": "did", "future": "will"}[tense]
        if question:
            parts = [help_, subject.english, adverb, verb.english[0]]
        elif adverb == "not" or tense == "future":
            parts = [subject.english, help_, adverb, verb.english[0]]
        else:
            parts = [subject.english, adverb, verb.english[2 if tense == "past" else 1 if one else 0]]
        return " ".join(word for word in [*parts, behind, "?" if question else "."] if word)

    @staticmethod
    def french(subject, words, before, adverb, behind, form):
        finite, rest = words[0], words[1:]
        if rest and before:
            rest = [shortened(before, rest[0])] + rest
        elif before:
            finite = f"{shortened(before, finite)} {finite}"
        start = [shortened("ne", finite)] if adverb in ("pas", "jamais") else []
        if form == 1:
            pronoun = subject.french if subject.pronoun else ("ils" if subject.many else "il") if subject.gender == "m" \
                else "elles" if subject.many else "elle"
            finite += f" -{pronoun}" if finite[-1] in "td" else f" -t-{pronoun}"
        group = [word for word in [*start, finite, adverb, *rest, behind] if word]
        if form == 1 and subject.pronoun:
            return " ".join(group + ["?"])
        group.insert(0, shortened(subject.french, group[0]))
        if form == 0:
            group = ["est-ce", shortened("que", group[0]), *group]
        return " ".join(group + ["." if form is None else "?"])


LONGEST = 14  # words of a sentence, in each language


def sentences(seed, form=None, without=()):
    """Pairs without end, but for those whose English is among `without`."""
    speaker = Speaker(random.Random(seed))
    while True:
        english, french = speaker.pair(form)
        if english not in without and max(len(english.split()), len(french.split())) <= LONGEST:
            yield english, french


def bleu(said, right, k=2):
    """Of two lists of words, from 0 to 1: how many stretches of 1 to k words they share, the longer ones counting more;
    less, where too little was said."""
    if len(said) < k or len(right) < k:
        return float(said == right)
    score = math.exp(min(0, 1 - len(right) / len(said)))
    for n in range(1, k + 1):
        ours, theirs = (collections.Counter(zip(*(words[i:] for i in range(n)))) for words in (said, right))
        score *= ((ours & theirs).total() / ours.total()) ** 0.5 ** n
    return score
