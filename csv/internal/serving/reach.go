// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// rule is one rule of a webhook.
type rule = admissionregistrationv1.RuleWithOperations

// AnnotationAllowed is an annotation of an OperatorGroup by which a cluster administrator allows webhooks for
// cluster-scoped objects. Without it, the OperatorGroup must select all namespaces for such webhooks. The value is a
// list of hashes of webhook descriptions, separated by commas. The label olm.webhook-description-hash contains the same
// hash. The annotation also allows later versions with the same description.
const AnnotationAllowed = olmcore.KeyPrefix + "allowed-webhooks"

// namespaces is the only cluster-scoped resource that a namespaceSelector restricts.
const namespaces = "namespaces"

// isRestricted reports whether the OperatorGroup selects only some namespaces, which the namespaceSelector of its
// webhooks then names. It is false without an OperatorGroup, because nothing is installed then.
func isRestricted(f *facts) bool {
	selector, ok := f.namespaces()
	return ok && selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

// judged contains the rules that a description gets if the OperatorGroup selects only some namespaces.
type judged struct {
	// rules contains the rules of a new configuration, without refused rules.
	rules []rule
	// refused is the index of the first rule that prevents a new configuration, and why is the reason. If no rule does,
	// why is empty.
	refused int
	why     string
	// mayReachClusterScoped is true if the described rules may match cluster-scoped objects that the field rules does
	// not match.
	mayReachClusterScoped bool
	// unrecorded contains the cluster-scoped CRDs that the rules and the CSV name and that do not belong to the CSV,
	// sorted.
	unrecorded []string
}

// judge returns the rules that a description gets. The namespaceSelector of a webhook does not restrict cluster-scoped
// objects other than Namespaces, so a rule may name only cluster-scoped resources of the CSV itself.
//
// Differs: OLM installs every rule as it is described.
func judge(w *description, from resources) judged {
	var j judged
	unrecorded := sets.New[string]()
	for i := range w.Rules {
		r := &w.Rules[i]
		kept, problem := from.keptOf(r, unrecorded), ""
		switch {
		case len(builtInOf(r)) > 0:
			problem = "names the cluster-scoped resources " + someOf(builtInOf(r))
		case isClusterOnly(r) && !kept.isAll:
			problem = "has the scope Cluster and names the resources " + someOf(r.Resources)
		}
		switch {
		case problem != "":
			if j.why == "" {
				j.refused, j.why = i, problem
			}
			j.mayReachClusterScoped = true
		case kept.isAll:
			j.rules = append(j.rules, *r)
		default:
			j.rules = append(append(j.rules, kept.rules...), namespacedOnly(r))
			j.mayReachClusterScoped = j.mayReachClusterScoped || mayReachMore(r)
		}
	}
	j.unrecorded = sets.List(unrecorded)
	return j
}

// refusal returns the message about a description whose configuration the OperatorGroup does not allow.
func refusal(f *facts, r *reach) string {
	var o offer
	o.add(r)
	return problemf(r.description, fmt.Sprintf("rules[%d]", r.now.refused), "the rule %s, but OperatorGroup %s does not select all "+
		"namespaces; install the operator in a namespace whose OperatorGroup does, or let a cluster administrator %s",
		r.now.why, f.source.Group.Name, o.text(f))
}

// allowed returns the hashes of the descriptions that a cluster administrator allowed.
func allowed(f *facts) sets.Set[string] {
	hashes := sets.New[string]()
	if f.source.Group != nil {
		for value := range strings.SplitSeq(f.source.Group.Annotations[AnnotationAllowed], ",") {
			if value = strings.TrimSpace(value); isHash(value) {
				hashes.Insert(value)
			}
		}
	}
	return hashes
}

// isHash reports whether a value may be a hash of a description. Other values allow nothing, and are not repeated in
// commands.
func isHash(value string) bool {
	isDigitOrLetter := func(r rune) bool { return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
	return value != "" && strings.TrimFunc(value, isDigitOrLetter) == ""
}

// allowCommand returns the command with which a cluster administrator allows further descriptions, given by their
// hashes.
func allowCommand(f *facts, further sets.Set[string]) string {
	return fmt.Sprintf("kubectl annotate operatorgroup %s -n %s %s=%s --overwrite",
		f.source.Group.Name, f.source.Group.Namespace, AnnotationAllowed, strings.Join(sets.List(allowed(f).Union(further)), ","))
}

func isClusterOnly(r *rule) bool {
	return r.Scope != nil && *r.Scope == admissionregistrationv1.ClusterScope
}

// namespacedOnly returns a copy of a rule for namespaced objects only.
func namespacedOnly(r *rule) rule {
	after := *r
	after.Scope = new(admissionregistrationv1.NamespacedScope)
	return after
}

// mayReachMore reports whether a rule may match cluster-scoped objects. It returns false if the rule has the scope
// Namespaced, or names only namespaced resources of Kubernetes.
func mayReachMore(r *rule) bool {
	if r.Scope != nil && *r.Scope == admissionregistrationv1.NamespacedScope {
		return false
	}
	entries := distinct(r.Resources)
	return slices.ContainsFunc(distinct(r.APIGroups), func(group string) bool {
		return slices.ContainsFunc(entries, func(entry string) bool { return !isInNamespaces(group, entry) })
	})
}

// builtInOf returns the cluster-scoped resources of Kubernetes that a rule names, with their groups and in lower case.
func builtInOf(r *rule) (names []string) {
	var entries []string
	for _, group := range distinct(lowered(r.APIGroups)) {
		if len(builtIn[group]) == 0 {
			continue
		}
		if entries == nil {
			entries = distinct(lowered(r.Resources))
		}
		for _, entry := range entries {
			if builtIn[group].Has(resourceOf(entry)) {
				names = append(names, strings.TrimSuffix(entry+"."+group, "."))
			}
		}
	}
	return names
}

func lowered(list []string) []string {
	lower := make([]string, len(list))
	for i, entry := range list {
		lower[i] = strings.ToLower(entry)
	}
	return lower
}

// distinct returns the entries of a list in their order, without duplicates.
func distinct(list []string) (entries []string) {
	seen := sets.New[string]()
	for _, entry := range list {
		if !seen.Has(entry) {
			entries = append(entries, entry)
		}
		seen.Insert(entry)
	}
	return entries
}

// kept is the part of a rule that stays as described.
type kept struct {
	rules []rule
	// isAll is true if the whole rule stays.
	isAll bool
}

// resources contains the CRDs that a CSV lists as owned and that exist, by the names of their resources. isOwn contains
// the names of the cluster-scoped CRDs that its webhooks may be called for.
type resources struct {
	listed map[string][]*apiextensionsv1.CustomResourceDefinition
	isOwn  sets.Set[string]
}

// keptOf returns the part of a rule that stays as described: Namespaces, and CRDs of the CSV. It adds the
// cluster-scoped CRDs that the CSV lists and that are not its own to unrecorded. API groups with the same remaining
// resources share one rule. The cost grows with the lengths of the rule's lists, not with their product.
func (from resources) keptOf(r *rule, unrecorded sets.Set[string]) kept {
	groups, entries := distinct(r.APIGroups), distinct(r.Resources)
	isNamed, stays := sets.New(groups...), map[string]sets.Set[string]{} // names of resources by group
	keep := func(group, resource string) {
		if stays[group] == nil {
			stays[group] = sets.New[string]()
		}
		stays[group].Insert(resource)
	}
	for _, entry := range entries {
		resource := resourceOf(entry)
		if resource == namespaces && isNamed.Has("") {
			keep("", resource)
		}
		for _, crd := range from.listed[resource] {
			switch {
			case !isNamed.Has(crd.Spec.Group):
			case crd.Spec.Scope == apiextensionsv1.NamespaceScoped || from.isOwn.Has(crd.Name):
				keep(crd.Spec.Group, resource)
			default:
				unrecorded.Insert(crd.Name)
			}
		}
	}
	return assembled(r, groups, entries, stays)
}

// assembled returns the rules for the remaining resources, in the order of the groups.
func assembled(r *rule, groups, entries []string, stays map[string]sets.Set[string]) kept {
	var k kept
	count := 0
	places := map[string]int{} // indexes of the rules, by their resources
	for _, group := range groups {
		if stays[group] == nil {
			continue
		}
		names := slices.DeleteFunc(slices.Clone(entries), func(entry string) bool { return !stays[group].Has(resourceOf(entry)) })
		count += len(names)
		key := strings.Join(sets.List(stays[group]), ",")
		if at, found := places[key]; found {
			k.rules[at].APIGroups = append(k.rules[at].APIGroups, group)
			continue
		}
		places[key] = len(k.rules)
		part := *r
		part.APIGroups, part.Resources = []string{group}, names
		k.rules = append(k.rules, part)
	}
	k.isAll = count == len(groups)*len(entries)
	return k
}

// resourcesOf returns the resources that the rules of a CSV may name.
func resourcesOf(f *facts) resources {
	from := resources{listed: map[string][]*apiextensionsv1.CustomResourceDefinition{}, isOwn: sets.New[string]()}
	for _, name := range sets.List(model.OwnedCRDNames(f.source.CSV)) {
		crd := f.crds[name]
		if crd == nil || name != crd.Spec.Names.Plural+"."+crd.Spec.Group {
			continue
		}
		from.listed[crd.Spec.Names.Plural] = append(from.listed[crd.Spec.Names.Plural], crd)
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped && isOwnCRD(f, crd) {
			from.isOwn.Insert(name)
		}
	}
	return from
}

// isOwnCRD reports whether the webhooks of this CSV may be called for a cluster-scoped CRD. An InstallPlan must have
// recorded that the CRD was installed with the CSV, or with the version that it replaces. If the CRD may belong to an
// operator of another namespace, an existing webhook configuration of the CSV, or of the version that it replaces, must
// already match its objects.
func isOwnCRD(f *facts, crd *apiextensionsv1.CustomResourceDefinition) bool {
	replaced := types.NamespacedName{Namespace: f.source.CSV.Namespace, Name: f.source.CSV.Spec.Replaces}
	if !model.IsInstalledWith(f.source.CSV, crd) && !slices.Contains(model.InstalledAlongside(crd), replaced) {
		return false
	}
	return model.ConflictingOwner(crd, f.source.CSV.Namespace, f.source.isPrescribed()).Name == "" || isCalledFor(f, crd)
}

// isCalledFor reports whether a configuration of this CSV, or of the version that it replaces, is called for the
// objects of a cluster-scoped CRD. Tenants cannot write configurations.
func isCalledFor(f *facts, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(f.all, func(o olmcore.Object) bool {
		owner, _ := olmcore.OwnerOf(o.GetLabels())
		isOfReplaced := f.source.CSV.Spec.Replaces != "" && owner.Name == f.source.CSV.Spec.Replaces
		if !isOfReplaced && !slices.Contains(f.own, o) {
			return false
		}
		return slices.ContainsFunc(liveRules(o), func(r rule) bool {
			isIt := func(entry string) bool { return resourceOf(entry) == crd.Spec.Names.Plural }
			return (r.Scope == nil || *r.Scope != admissionregistrationv1.NamespacedScope) &&
				slices.Contains(r.APIGroups, crd.Spec.Group) && slices.ContainsFunc(r.Resources, isIt)
		})
	})
}

// liveRules returns the rules of the first webhook of a configuration, or nil. Configurations that OLM or this package
// created have one webhook.
func liveRules(o olmcore.Object) []rule {
	if hooks := hooksOf(o); len(hooks) > 0 {
		return *hooks[0].rules
	}
	return nil
}

// sameRules compares rules like the API server, which treats an empty scope as all scopes.
func sameRules(a, b []rule) bool {
	return semantic.DeepEqual(withScopes(a), withScopes(b))
}

func withScopes(rules []rule) []rule {
	rules = slices.Clone(rules)
	for i := range rules {
		setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
	return rules
}

// isMadeFrom reports whether a configuration was created from the present description, and has rules.
func isMadeFrom(o olmcore.Object, hash string) bool {
	return o != nil && o.GetLabels()[labelHash] == hash && len(liveRules(o)) > 0
}

// reach contains a description, its hash, and the rules that the description gets if the OperatorGroup selects only
// some namespaces. withoutRecords contains the rules that the description would get if no InstallPlan had recorded a
// CRD.
type reach struct {
	description         *description
	hash                string
	now, withoutRecords judged
	// narrowed contains the rules that the description would get if no administrator had allowed it.
	narrowed []rule
}

// reachOf judges the descriptions of admission webhooks. A description that cannot be hashed has no configuration, and
// is omitted. A description that a cluster administrator allowed gets its rules as described.
func reachOf(f *facts) map[origin]*reach {
	all := map[origin]*reach{}
	from := resourcesOf(f)
	isAllowed := allowed(f)
	without := resources{listed: from.listed}
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		hash, err := olmcore.Hash(w)
		if err != nil || kindOf(w) == "" {
			continue
		}
		r := &reach{description: w, hash: hash, now: judge(w, from), withoutRecords: judge(w, without)}
		r.narrowed = r.now.rules
		if isAllowed.Has(hash) {
			r.now = judged{rules: w.Rules}
		}
		all[originOf(w)] = r
	}
	return all
}

// rulesFor returns the rules that a configuration of a description should have. have is the existing configuration, or
// nil. Rules that were installed as described stay until the description changes or the next version replaces the CSV.
func rulesFor(f *facts, w *description, have olmcore.Object) []rule {
	r := f.reach[originOf(w)]
	if r == nil || !isRestricted(f) {
		return w.Rules
	}
	if isMadeFrom(have, r.hash) && (r.now.why != "" || sameRules(liveRules(have), w.Rules)) {
		return liveRules(have)
	}
	return r.now.rules
}

// rulesProblem returns a message about the first description with a rule that the OperatorGroup does not allow. It is
// empty if there is none, or if a list was not read. A configuration that was created from the description keeps its
// rules.
func rulesProblem(f *facts) string {
	if !isRestricted(f) || f.unread() != "" {
		return ""
	}
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		r := f.reach[originOf(w)]
		if kindOf(w) != "" && r != nil && r.now.why != "" && existingConfiguration(f, r) == nil {
			return refusal(f, r)
		}
	}
	return ""
}

// existingConfiguration returns the configuration that was created from the present description, or nil.
func existingConfiguration(f *facts, r *reach) olmcore.Object {
	for _, o := range f.made[originOf(r.description)] {
		if isMadeFrom(o, r.hash) {
			return o
		}
	}
	return nil
}

// widenedRules returns wider rules that a configuration gets without a new installation, or nil. An installation
// narrows rules to those that the OperatorGroup and the records of CRDs allow at that time. If they allow more now, the
// configuration gets the rules that an installation would write now.
func widenedRules(f *facts, o olmcore.Object) []rule {
	r := f.reach[f.from(o)]
	if r == nil || !isMadeFrom(o, r.hash) || r.now.why != "" {
		return nil
	}
	live, want := liveRules(o), r.description.Rules
	if isRestricted(f) {
		want = r.now.rules
	}
	isNarrowed := sameRules(live, r.withoutRecords.rules) || sameRules(live, r.narrowed)
	if !isNarrowed || sameRules(live, want) {
		return nil
	}
	return want
}

// resourceOf returns the resource of an entry of a rule's resources without its subresource.
func resourceOf(entry string) string {
	resource, _, _ := strings.Cut(entry, "/")
	return resource
}

// isInNamespaces reports whether an API group and an entry of a rule's resources can only name namespaced resources of
// Kubernetes.
func isInNamespaces(group, entry string) bool {
	clusterScoped, known := builtIn[group]
	resource := resourceOf(entry)
	return known && resource != "*" && resource != namespaces && !clusterScoped.Has(resource)
}
