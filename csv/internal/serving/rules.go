// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// forbidden returns a message about a rule that could make the cluster unusable. It is empty if there is none. It also
// checks conversion webhooks, although they do not use rules.
//
// Source: operator-lifecycle-manager pkg/controller/install/webhook.go, ValidWebhookRules.
// Differs: the resource names of the webhook configurations are rejected too, not only their kinds, and the comparison
// ignores case.
func forbidden(w *description) string {
	for i := range w.Rules {
		groups, resources := w.Rules[i].APIGroups, w.Rules[i].Resources
		is := func(group string) func(string) bool {
			return func(have string) bool { return strings.EqualFold(have, group) }
		}
		switch {
		case slices.Contains(groups, "*"):
			return "webhook rules cannot include all groups"
		case slices.ContainsFunc(groups, is(v1alpha1.GroupName)):
			return "webhook rules cannot include the OLM group"
		case slices.ContainsFunc(groups, is(admissionregistrationv1.GroupName)) && slices.ContainsFunc(resources, isConfiguration):
			return "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"
		}
	}
	return ""
}

// isConfiguration reports whether an entry of a rule names webhook configurations or a subresource of them, by kind or
// by resource.
func isConfiguration(resource string) bool {
	name, _, _ := strings.Cut(strings.ToLower(resource), "/")
	name = strings.TrimSuffix(name, "s")
	return name == "*" || name == "mutatingwebhookconfiguration" || name == "validatingwebhookconfiguration"
}

// ruleProblem returns a field of a rule that the API server would reject, and why. problem is empty if the rule is
// valid.
func ruleProblem(r *admissionregistrationv1.RuleWithOperations) (path, problem string) {
	operations := make([]string, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = string(o)
	}
	for _, o := range r.Operations {
		if problem = oneOf(&o, admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update,
			admissionregistrationv1.Delete, admissionregistrationv1.Connect); problem != "" {
			return "operations", problem
		}
	}
	lists := []struct {
		path    string
		entries []string
		all     string // the entry that includes the others
		empty   bool   // whether an entry may be empty
	}{
		{"operations", operations, "*", false},
		{"apiGroups", r.APIGroups, "*", true},
		{"apiVersions", r.APIVersions, "*", false},
		{"resources", r.Resources, "*/*", false},
	}
	for _, list := range lists {
		switch {
		case len(list.entries) == 0:
			return list.path, "is empty"
		case len(list.entries) > 1 && slices.Contains(list.entries, list.all):
			return list.path, fmt.Sprintf("%s includes all others", list.all)
		case !list.empty && slices.Contains(list.entries, ""):
			return list.path, "has an empty entry"
		}
	}
	if problem = resourcesProblem(r.Resources); problem != "" {
		return "resources", problem
	}
	return "scope", oneOf(r.Scope,
		admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)
}

// resourcesProblem returns why the API server would reject the resources of a rule. It rejects an entry that an earlier
// entry includes, and * if the last entry without a subresource is another one.
func resourcesProblem(resources []string) string {
	seen, last := sets.New[string](), ""
	for _, entry := range resources {
		resource, part, found := strings.Cut(entry, "/")
		if !found {
			last = entry
			seen.Insert(entry)
			continue
		}
		for _, wide := range []string{resource + "/*", "*/" + part} {
			if seen.Has(wide) {
				return fmt.Sprintf("%s includes %s", wide, entry)
			}
		}
		seen.Insert(entry)
	}
	if seen.Has("*") && last != "*" {
		return "* includes " + last
	}
	return ""
}
