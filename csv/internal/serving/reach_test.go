// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/olmcore"
)

type ruleWithOperations = admissionregistrationv1.RuleWithOperations

// rule returns a webhook rule. groups and resources are separated by commas.
func rule(groups, resources string, scope ...admissionregistrationv1.ScopeType) ruleWithOperations {
	r := describe("v.example.com", validating).Rules[0]
	r.APIGroups, r.Resources = strings.Split(groups, ","), strings.Split(resources, ",")
	if len(scope) > 0 {
		r.Scope = &scope[0]
	}
	return r
}

func list(rules ...ruleWithOperations) []ruleWithOperations {
	return rules
}

// rulesOf returns short forms of rules: groups, resources and scope.
func rulesOf(rules []ruleWithOperations) string {
	var all []string
	for _, r := range rules {
		scope := admissionregistrationv1.AllScopes
		if r.Scope != nil {
			scope = *r.Scope
		}
		all = append(all, fmt.Sprintf("%q %s %s", strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","), scope))
	}
	return strings.Join(all, "; ")
}

// oneNamespace is an OperatorGroup that targets one namespace.
func oneNamespace() *operatorsv1.OperatorGroup {
	return group(operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ns"}})
}

// clusterScoped makes a CRD cluster-scoped.
func clusterScoped(crd *definition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }

// with returns a description with these rules.
func with(kind v1alpha1.WebhookAdmissionType, rules ...ruleWithOperations) description {
	return describe("v.example.com", kind, func(w *description) { w.Rules = rules })
}

// owning returns an operator that lists more CRDs as owned.
func owning(w description, crds ...string) *v1alpha1.ClusterServiceVersion {
	c := operator(w)
	for _, name := range crds {
		owned := v1alpha1.CRDDescription{Name: name, Version: "v1", Kind: "Kind"}
		c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, owned)
	}
	return c
}

// hash returns the hash of a description.
func hash(t *testing.T, w description) string {
	text, err := olmcore.Hash(&w)
	require.NoError(t, err)
	return text
}

// command returns the rules of a description and the command that allows them.
func command(t *testing.T, w description) string {
	r := w.Rules[0]
	rules := strings.Join(r.Resources, ",") + " of API groups " + strings.Join(r.APIGroups, ",")
	return fmt.Sprintf("allow all rules of the webhooks, %q, with: ", rules) +
		"kubectl annotate operatorgroup group -n ns olmcore/allowed-webhooks=" + hash(t, w) + " --overwrite"
}

// installedRules returns the rules of the only configuration that an installation creates, and why it creates none.
func installedRules(t *testing.T, s internalserving.Clients) (rules, problem string) {
	actions, problem := s.Install()
	if problem != "" {
		require.Empty(t, actions)
		return "", problem
	}
	require.Len(t, actions, 1)
	return rulesOf(liveRules(actions[0].(olmcore.Create).Object)), ""
}

// liveRules returns the rules of a configuration.
func liveRules(o olmcore.Object) []ruleWithOperations {
	switch o := o.(type) {
	case *validatingConfiguration:
		return o.Webhooks[0].Rules
	case *mutatingConfiguration:
		return o.Webhooks[0].Rules
	}
	return nil
}

// TestWebhookIsNotCalledForClusterScopedObjects simulates an attack of a tenant whose OperatorGroup targets one
// namespace. A namespaceSelector restricts no cluster-scoped objects except Namespaces.
func TestWebhookIsNotCalledForClusterScopedObjects(t *testing.T) {
	const cluster, namespaced = admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope
	const refused = "refused"
	theirs := crd("alls.other.example", clusterScoped, recorded("other/b"), func(crd *definition) { crd.Spec.Group = "other.example" })
	mine := crd("wides.example.com", clusterScoped)
	before := crd("olds.example.com", clusterScoped, recorded("ns/cool.v0"))
	unmarked := crd("helms.example.com", clusterScoped, recorded())
	shared := crd("both.example.com", clusterScoped, recorded("ns/cool.v1", "other/b"))
	narrow := crd("cools.example.com", recorded())
	for name, c := range map[string]struct {
		rules []ruleWithOperations
		want  string
	}{
		"cluster roles":                         {list(rule("rbac.authorization.k8s.io", "clusterroles")), refused},
		"definitions":                           {list(rule("apiextensions.k8s.io", "customresourcedefinitions")), refused},
		"nodes":                                 {list(rule("", "nodes")), refused},
		"the status of nodes":                   {list(rule("", "pods,nodes/status")), refused},
		"all parts of nodes":                    {list(rule("", "nodes/*")), refused},
		"nodes with an empty part":              {list(rule("", "nodes/")), refused},
		"nodes in capitals":                     {list(rule("", "Nodes")), refused},
		"token reviews":                         {list(rule("authentication.k8s.io", "tokenreviews")), refused},
		"a group in capitals":                   {list(rule("Authentication.K8s.IO", "tokenreviews")), refused},
		"access reviews":                        {list(rule("authorization.k8s.io", "subjectaccessreviews")), refused},
		"the second of two rules":               {list(rule("", "pods"), rule("storage.k8s.io", "storageclasses")), refused},
		"a resource of the second group":        {list(rule("apps,rbac.authorization.k8s.io", "deployments,clusterroles")), refused},
		"cluster roles, with scope":             {list(rule("rbac.authorization.k8s.io", "clusterroles", cluster)), refused},
		"cluster scope":                         {list(rule("example.org", "things", cluster)), refused},
		"cluster scope of all":                  {list(rule("", "*", cluster)), refused},
		"cluster scope of a CRD of another CSV": {list(rule("other.example", "alls", cluster)), refused},
		"cluster scope of an unmarked CRD":      {list(rule("example.com", "helms", cluster)), refused},
		"cluster scope of its own CRD and more": {list(rule("example.com", "wides,pods", cluster)), refused},
		"cluster scope of its own CRD": {list(rule("example.com", "wides,wides/status", cluster)),
			`"example.com" wides,wides/status Cluster`},
		"cluster scope of namespaces": {list(rule("", "namespaces", cluster)), `"" namespaces Cluster`},
		"namespaces":                  {list(rule("", "namespaces,namespaces/finalize")), `"" namespaces,namespaces/finalize *`},
		"namespaces of another group": {list(rule("example.org", "namespaces")), `"example.org" namespaces Namespaced`},
		"namespaces in capitals":      {list(rule("", "Namespaces")), `"" Namespaces Namespaced`},
		"Pods":                        {list(rule("", "pods")), `"" pods Namespaced`},
		"Pods with scope":             {list(rule("", "pods", namespaced)), `"" pods Namespaced`},
		"all of the core group":       {list(rule("", "*")), `"" * Namespaced`},
		"all and its parts": {list(rule("rbac.authorization.k8s.io", "*/*")),
			`"rbac.authorization.k8s.io" */* Namespaced`},
		"the status of all":    {list(rule("storage.k8s.io", "*/status")), `"storage.k8s.io" */status Namespaced`},
		"all, in another form": {list(rule("", "*/")), `"" */ Namespaced`},
		"OpenShift's": {list(rule("quota.openshift.io", "clusterresourcequotas")),
			`"quota.openshift.io" clusterresourcequotas Namespaced`},
		"its own namespaced CRD":           {list(rule("example.com", "cools,cools/*")), `"example.com" cools,cools/* *`},
		"its own CRD":                      {list(rule("example.com", "wides")), `"example.com" wides *`},
		"the CRD of the previous version":  {list(rule("example.com", "olds")), `"example.com" olds *`},
		"a CRD of another CSV":             {list(rule("other.example", "alls")), `"other.example" alls Namespaced`},
		"a CRD that no plan installed":     {list(rule("example.com", "helms")), `"example.com" helms Namespaced`},
		"a CRD that came with two":         {list(rule("example.com", "both")), `"example.com" both Namespaced`},
		"an absent CRD":                    {list(rule("example.com", "lates")), `"example.com" lates Namespaced`},
		"a CRD that the CSV does not list": {list(rule("example.com", "strays")), `"example.com" strays Namespaced`},
		"its own CRD in capitals":          {list(rule("example.com", "Wides")), `"example.com" Wides Namespaced`},
		"all of its own group":             {list(rule("example.com", "*")), `"example.com" * Namespaced`},
		"its own CRD and Pods": {list(rule("example.com,", "wides,pods")),
			`"example.com" wides *; "example.com," wides,pods Namespaced`},
		"namespaces and Deployments": {list(rule(",apps", "namespaces,deployments")),
			`"" namespaces *; ",apps" namespaces,deployments Namespaced`},
		"two of its own, and one of another CSV": {list(rule("example.com", "wides,cools,alls")),
			`"example.com" wides,cools *; "example.com" wides,cools,alls Namespaced`},
		"nothing": {nil, ""},
		"rules in their order": {list(rule("", "pods"), rule("", "namespaces"), rule("apps", "deployments")),
			`"" pods Namespaced; "" namespaces *; "apps" deployments Namespaced`},
		"one resource twice": {list(rule("example.com,example.com", "wides,wides")), `"example.com,example.com" wides,wides *`},
		"one group twice, and another": {list(rule("example.com,example.com,x.example", "wides")),
			`"example.com" wides *; "example.com,example.com,x.example" wides Namespaced`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []v1alpha1.WebhookAdmissionType{validating, mutating} {
				csv := owning(with(kind, c.rules...), "wides.example.com", "olds.example.com", "helms.example.com", "both.example.com",
					"lates.example.com", "alls.other.example", "Wides.example.com")
				csv.Spec.Replaces = "cool.v0"
				s := source(csv, theirs, mine, before, unmarked, shared, narrow, crd("strays.example.com", clusterScoped))
				s.Group = oneNamespace()
				got, problem := installedRules(t, s)
				if problem != "" {
					got = refused
				}
				require.Empty(t, cmp.Diff(c.want, got), "%s: %s", kind, problem)

				s.Group = group(operatorsv1.OperatorGroupSpec{Selector: &metav1.LabelSelector{}})
				got, problem = installedRules(t, s)
				require.Empty(t, problem, "a group of all namespaces")
				require.Empty(t, cmp.Diff(rulesOf(c.rules), got), "a group of all namespaces")
			}
		})
	}
}

// TestInstalledRulesAreKept checks that a configuration keeps its rules until its description changes or its CSV is
// replaced, and what is reported about it.
func TestInstalledRulesAreKept(t *testing.T) {
	refused := with(validating, rule("rbac.authorization.k8s.io", "clusterroles"))
	narrowed := with(validating, rule("example.org", "things"))
	plain := with(validating, rule("", "pods"))
	refusal := `webhook description "v.example.com": rules[0]: the rule names the cluster-scoped resources ` +
		"clusterroles.rbac.authorization.k8s.io, but OperatorGroup group does not select all namespaces; " +
		"install the operator in a namespace whose OperatorGroup does, or let a cluster administrator " + command(t, refused)
	const keeps = "webhook configurations keep rules for cluster-scoped objects until this version is replaced, although " +
		"OperatorGroup group does not select all namespaces: ValidatingWebhookConfiguration v.example.com-8k2xz "
	const allow = "; for new configurations, a cluster administrator can "
	wouldRefuse := keeps + `(clusterroles of API groups "rbac.authorization.k8s.io"; ` +
		"for a new configuration such rules would be refused)" + allow + command(t, refused)
	wouldNarrow := keeps + `(things of API groups "example.org"; ` +
		"for a new configuration such rules would get the scope Namespaced)" + allow + command(t, narrowed)
	for name, c := range map[string]struct {
		from, now description
		change    func(s *internalserving.Clients, o *validatingConfiguration)
		want      string // rules afterwards
		problem   string
		install   int
		trust     int
		reported  string
	}{
		"a refused rule": {from: refused, now: refused, want: `"rbac.authorization.k8s.io" clusterroles *`,
			reported: wouldRefuse},
		"a narrowed rule":                      {from: narrowed, now: narrowed, want: `"example.org" things *`, reported: wouldNarrow},
		"a rule that would match nothing else": {from: plain, now: plain, want: `"" pods *`},
		"a group of all namespaces": {from: refused, now: refused, want: `"rbac.authorization.k8s.io" clusterroles *`,
			change: func(s *internalserving.Clients, o *validatingConfiguration) {
				s.Group, o.Webhooks[0].NamespaceSelector = group(operatorsv1.OperatorGroupSpec{}), &metav1.LabelSelector{}
			}},
		"a group that selected all namespaces before": {from: refused, now: refused, want: `"rbac.authorization.k8s.io" clusterroles *`,
			change: func(_ *internalserving.Clients, o *validatingConfiguration) {
				o.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{}
			},
			install: 1, trust: 1, reported: wouldRefuse},
		"a narrowed rule, and a group that selects all namespaces now": {from: narrowed, now: narrowed, want: `"example.org" things *`,
			change: func(s *internalserving.Clients, o *validatingConfiguration) {
				s.Group = group(operatorsv1.OperatorGroupSpec{})
				o.Webhooks[0].Rules[0].Scope = new(admissionregistrationv1.NamespacedScope)
			}, install: 1, trust: 1},
		"another failure policy": {from: narrowed, now: narrowed, want: `"example.org" things *`,
			change: func(_ *internalserving.Clients, o *validatingConfiguration) {
				o.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
			}, install: 1, reported: wouldNarrow},
		"another authority": {from: refused, now: refused, want: `"rbac.authorization.k8s.io" clusterroles *`,
			change: func(_ *internalserving.Clients, o *validatingConfiguration) {
				o.Webhooks[0].ClientConfig.CABundle = second
			},
			install: 1, trust: 1, reported: wouldRefuse},
		"a refused rule that an administrator narrowed": {from: refused, now: refused, want: `"rbac.authorization.k8s.io" roles *`,
			change: func(_ *internalserving.Clients, o *validatingConfiguration) {
				o.Webhooks[0].Rules[0].Resources = []string{"roles"}
			},
		},
		"a rule that an administrator changed": {from: narrowed, now: narrowed, want: `"example.org" things Namespaced`,
			change: func(_ *internalserving.Clients, o *validatingConfiguration) {
				o.Webhooks[0].Rules[0].Resources = []string{"x"}
			},
			install: 1},
		"a changed description":                 {from: plain, now: narrowed, want: `"example.org" things Namespaced`, install: 1},
		"a changed description that is refused": {from: plain, now: refused, want: `"" pods *`, problem: refusal},
		"the rules were removed": {from: refused, now: refused,
			change: func(_ *internalserving.Clients, o *validatingConfiguration) { o.Webhooks[0].Rules = nil }, problem: refusal},
		"lists that were not read": {from: plain, now: refused, want: `"" pods *`,
			change: func(s *internalserving.Clients, _ *validatingConfiguration) {
				s.UnreadCRDs = []string{"CustomResourceDefinitions"}
			},
			problem: "not read: CustomResourceDefinitions"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(operator(c.now))
			s.Group = oneNamespace()
			o := validated(t, "v.example.com-8k2xz", c.from)
			selector := &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorgroup.uid/group": ""}}
			o.Webhooks[0].NamespaceSelector = selector
			if c.change != nil {
				c.change(&s, o)
			}
			observe(&s, o)
			actions, problem := s.Install()
			require.Equal(t, c.problem, problem)
			require.Len(t, actions, c.install, "%s", lines(actions))
			trust := s.Trust()
			require.Len(t, trust, c.trust, "%s", lines(trust))
			for _, a := range append(actions, trust...) {
				after := a.(olmcore.Update).After
				require.Equal(t, c.want, rulesOf(liveRules(after)), "%s", lines([]olmcore.Action{a}))
			}
			if c.install == 0 {
				require.Equal(t, c.want, rulesOf(liveRules(o)))
			}
			var reported string
			for _, d := range s.Diagnostics() {
				reported += d.Message
			}
			require.Equal(t, c.reported, reported)
		})
	}
}

// TestClusterScopedCRDsOfOperator checks the records that let a webhook be called for cluster-scoped custom resources.
// A tenant can neither write them nor take them from another operator.
func TestClusterScopedCRDsOfOperator(t *testing.T) {
	const whole, narrow = `"example.com" wides *`, `"example.com" wides Namespaced`
	w := with(validating, rule("example.com", "wides"))
	before := func(change func(o *validatingConfiguration)) *validatingConfiguration {
		o := validated(t, "before", w, func(o *validatingConfiguration) { o.Labels["olm.owner"] = "cool.v0" })
		change(o)
		return o
	}
	wide := func(records ...string) *definition {
		return crd("wides.example.com", clusterScoped, recorded(records...))
	}
	firstBy := func(namespace string, records ...string) *definition {
		return crd("wides.example.com", clusterScoped, recorded(records...), firstInstalledBy(namespace))
	}
	asked, shared := before(func(*validatingConfiguration) {}), wide("ns/cool.v1", "other/b")
	for name, c := range map[string]struct {
		objects []olmcore.Object
		want    string
	}{
		"it was installed with the version":                          {objectsOf(wide("ns/cool.v1")), whole},
		"it was installed with the previous version":                 {objectsOf(wide("ns/cool.v0")), whole},
		"it was installed with both":                                 {objectsOf(wide("ns/cool.v0", "ns/cool.v1")), whole},
		"it was installed with another version of the namespace":     {objectsOf(wide("ns/other")), narrow},
		"it was installed with a version of another namespace":       {objectsOf(wide("other/cool.v1")), narrow},
		"it was installed with no version":                           {objectsOf(wide()), narrow},
		"a record without a namespace":                               {objectsOf(wide("cool.v1")), narrow},
		"it was also installed with another operator":                {objectsOf(shared), narrow},
		"its namespace was the first":                                {objectsOf(firstBy("ns", "ns/cool.v1", "other/b")), whole},
		"another namespace was the first":                            {objectsOf(firstBy("other", "ns/cool.v1", "other/b")), narrow},
		"its namespace was the first, with another's version alone":  {objectsOf(firstBy("ns", "other/b")), narrow},
		"the previous version is called for it":                      {objectsOf(shared, asked), whole},
		"it is called for it, but no record exists":                  {objectsOf(wide(), asked), narrow},
		"it is called for it, but only another operator is recorded": {objectsOf(wide("other/b"), asked), narrow},
		"the previous version is not called": {objectsOf(shared, before(func(o *validatingConfiguration) {
			o.Webhooks[0].Rules[0].Scope = new(admissionregistrationv1.NamespacedScope)
		})), narrow},
		"another version is called for it": {objectsOf(shared, before(func(o *validatingConfiguration) {
			o.Labels["olm.owner"] = "other"
		})), narrow},
		"a version of that name in another namespace is called for it": {objectsOf(shared, before(func(o *validatingConfiguration) {
			o.Labels["olm.owner.namespace"] = "other"
		})), narrow},
		"the previous version is called for all resources": {objectsOf(shared, before(func(o *validatingConfiguration) {
			o.Webhooks[0].Rules[0].Resources = []string{"*"}
		})), narrow},
		"a CRD without a scope": {objectsOf(crd("wides.example.com", recorded(), func(crd *definition) { crd.Spec.Scope = "" })), narrow},
	} {
		t.Run(name, func(t *testing.T) {
			csv := owning(w, "wides.example.com")
			csv.Spec.Replaces = "cool.v0"
			s := source(csv, c.objects...)
			s.Group = oneNamespace()
			actions, problem := s.Install()
			require.Empty(t, problem)
			i := slices.IndexFunc(actions, func(a olmcore.Action) bool { _, creates := a.(olmcore.Create); return creates })
			require.Equal(t, c.want, rulesOf(liveRules(actions[i].(olmcore.Create).Object)))
			reported := s.Diagnostics()
			if c.want == whole {
				require.Empty(t, reported)
				return
			}
			require.Len(t, reported, 1)
			require.Equal(t, internalserving.ReasonRulesNarrowed, reported[0].Reason)
			require.Equal(t, "webhooks are not called for custom resources of the cluster-scoped CRDs wides.example.com: no InstallPlan "+
				"recorded that they were installed only with this version, and OperatorGroup group does not select all namespaces; "+
				"a cluster administrator can "+command(t, w), reported[0].Message)
		})
	}
}

// TestAnnotationAllowsRules checks that the annotation of an OperatorGroup allows the rules of the descriptions that it
// names, and no others.
func TestAnnotationAllowsRules(t *testing.T) {
	const asDescribed = `"rbac.authorization.k8s.io" clusterroles *`
	w := with(validating, rule("rbac.authorization.k8s.io", "clusterroles"))
	own, another := hash(t, w), hash(t, with(validating, rule("", "nodes")))
	refusal := func(hashes string) string {
		return `webhook description "v.example.com": rules[0]: the rule names the cluster-scoped resources ` +
			"clusterroles.rbac.authorization.k8s.io, but OperatorGroup group does not select all namespaces; install the operator in a " +
			"namespace whose OperatorGroup does, or let a cluster administrator allow all rules of the webhooks, " +
			`"clusterroles of API groups rbac.authorization.k8s.io", with: ` +
			"kubectl annotate operatorgroup group -n ns olmcore/allowed-webhooks=" + hashes + " --overwrite"
	}
	for name, c := range map[string]struct {
		annotation string
		rules      string
		problem    string
	}{
		"nothing":                  {"", "", refusal(own)},
		"this description":         {own, asDescribed, ""},
		"this one and another":     {another + " , " + own + ",", asDescribed, ""},
		"another one":              {another, "", refusal(strings.Join(slices.Sorted(slices.Values([]string{own, another})), ","))},
		"the start of the hash":    {own[:10], "", refusal(strings.Join(slices.Sorted(slices.Values([]string{own, own[:10]})), ","))},
		"a star":                   {"*", "", refusal(own)},
		"its name":                 {"v.example.com", "", refusal(own)},
		"a command":                {own + "; rm", "", refusal(own)},
		"commas and spaces only":   {" ,, ", "", refusal(own)},
		"this description, quoted": {`"` + own + `"`, "", refusal(own)},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(operator(w))
			s.Group = oneNamespace()
			s.Group.Annotations = map[string]string{"olmcore/allowed-webhooks": c.annotation}
			rules, problem := installedRules(t, s)
			require.Equal(t, c.rules, rules)
			require.Equal(t, c.problem, problem)
		})
	}
}

// TestMessageShowsAllRulesThatItsCommandAllows checks that a tenant cannot hide a rule from the administrator who runs
// the command.
func TestMessageShowsAllRulesThatItsCommandAllows(t *testing.T) {
	hidden := rule("authentication.k8s.io", "tokenreviews")
	w := with(validating, rule("", "nodes"), hidden, rule("x", "a\"; b"))
	s := source(operator(w))
	s.Group = oneNamespace()
	_, problem := s.Install()
	require.Contains(t, problem, `allow all rules of the webhooks, "nodes of API groups "; `+
		`"tokenreviews of API groups authentication.k8s.io"; "a\"; b of API groups x", with: `+
		"kubectl annotate operatorgroup group -n ns olmcore/allowed-webhooks="+hash(t, w))

	w.Rules = append(slices.Repeat(list(rule("", "nodes")), 100), hidden)
	s.CSV = operator(w)
	_, problem = s.Install()
	require.Contains(t, problem, " ... (cut here; read all rules in spec.webhookdefinitions), with: ")

	kept := make([]description, 0, 7)
	for i := range 7 {
		d := with(validating, hidden)
		d.GenerateName = fmt.Sprintf("v%d.example.com", i)
		kept = append(kept, d)
	}
	s = source(operator(kept...))
	s.Group = oneNamespace()
	for i, d := range kept {
		observe(&s, validated(t, fmt.Sprintf("v%d.example.com-x", i), d))
	}
	reported := s.Diagnostics()
	require.Len(t, reported, 1)
	require.Contains(t, reported[0].Message, "v4.example.com-x")
	require.Contains(t, reported[0].Message, "and 2 more")
	for i, d := range kept {
		require.Equal(t, i < 5, strings.Contains(reported[0].Message, hash(t, d)), i)
	}
}

// TestAllowedRulesReplaceNarrowedOnes checks that a configuration gets the rules as described once an administrator
// allows them, also if a part of them was not narrowed.
func TestAllowedRulesReplaceNarrowedOnes(t *testing.T) {
	for name, c := range map[string]struct{ resources, installed, want string }{
		"no CRD of the operator": {"things", `"example.com" things Namespaced`, `"example.com" things *`},
		"one CRD of the operator": {
			"wides,things", `"example.com" wides *; "example.com" wides,things Namespaced`, `"example.com" wides,things *`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := with(validating, rule("example.com", c.resources))
			s := source(owning(w, "wides.example.com"), crd("wides.example.com", clusterScoped))
			s.Group = oneNamespace()
			objects := installed(t, s)
			created := objects[len(objects)-1]
			require.Equal(t, c.installed, rulesOf(liveRules(created)))
			observe(&s, created)
			require.Empty(t, s.Trust())
			s.Group.Annotations = map[string]string{"olmcore/allowed-webhooks": hash(t, w)}
			trust := s.Trust()
			require.Len(t, trust, 1)
			require.Equal(t, c.want, rulesOf(liveRules(trust[0].(olmcore.Update).After)))
			require.Empty(t, s.Diagnostics())
		})
	}
}

// TestFirstOwnerWithAccountIsNotTrusted checks that a tenant who installed the CRD of another operator first gets no
// webhook for its custom resources.
func TestFirstOwnerWithAccountIsNotTrusted(t *testing.T) {
	w := with(validating, rule("example.com", "wides"))
	wide := crd("wides.example.com", clusterScoped, recorded("ns/cool.v1", "other/b"), firstInstalledBy("ns"))
	for account, want := range map[string]string{"": `"example.com" wides *`, "limited": `"example.com" wides Namespaced`} {
		s := source(owning(w, "wides.example.com"), wide)
		s.Group = oneNamespace()
		s.Group.Spec.ServiceAccountName = account
		rules, problem := installedRules(t, s)
		require.Empty(t, problem)
		require.Equal(t, want, rules, account)
	}
}

func objectsOf(objects ...olmcore.Object) []olmcore.Object { return objects }

// TestRulesAreWidenedOnceCRDIsRecorded checks that a webhook is called for a CRD of the operator once the CRD is
// recorded, without a new installation. If the record is lost, the installed rules stay.
func TestRulesAreWidenedOnceCRDIsRecorded(t *testing.T) {
	w := with(validating, rule("example.com", "wides"))
	s := source(owning(w, "wides.example.com"), crd("wides.example.com", clusterScoped, recorded()))
	s.Group = oneNamespace()
	objects := installed(t, s)
	grown := source(s.CSV, crd("wides.example.com", clusterScoped))
	grown.Group = oneNamespace()
	observe(&grown, objects[1])
	trust := grown.Trust()
	require.Equal(t, []string{"update ValidatingWebhookConfiguration " + objects[1].GetName() + " (Trust)"}, lines(trust))
	after := trust[0].(olmcore.Update).After
	require.Equal(t, `"example.com" wides *`, rulesOf(liveRules(after)))

	lost := source(s.CSV, crd("wides.example.com", clusterScoped, recorded()))
	lost.Group = oneNamespace()
	observe(&lost, after)
	require.Empty(t, lines(lost.Trust()))
	actions, problem := lost.Install()
	require.Empty(t, problem)
	require.Empty(t, lines(actions))
	reported := lost.Diagnostics()
	require.Len(t, reported, 1)
	require.Equal(t, internalserving.ReasonRulesKept, reported[0].Reason)
}

// TestSuccessorDoesNotInheritKeptRules checks that a successor gets no rules that its predecessor kept.
func TestSuccessorDoesNotInheritKeptRules(t *testing.T) {
	for want, w := range map[string]description{
		"":                                with(validating, rule("", "nodes")),
		`"example.org" things Namespaced`: with(validating, rule("example.org", "things")),
	} {
		before := validated(t, "before", w)
		before.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorgroup.uid/group": ""}}
		s := source(operator(w), before)
		s.Group = oneNamespace()
		_, problem := s.Install()
		require.Empty(t, problem)
		s.CSV.Name, s.CSV.UID, s.CSV.Spec.Replaces = "cool.v2", "uid-cool.v2", "cool.v1"
		got, problem := installedRules(t, s)
		require.Equal(t, want == "", problem != "", problem)
		require.Equal(t, want, got)
		require.Empty(t, lines(s.Trust()), "the predecessor's configuration is left alone")
	}
}
