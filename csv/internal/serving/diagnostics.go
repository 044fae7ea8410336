// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/olmcore"
)

// Diagnostics reports existing webhook rules and CRD conversions that would not be allowed if they were new. It also
// reports rules that a webhook does not get although its description contains them. It returns nil if a list was not
// read.
func (s Clients) Diagnostics() []olmcore.Diagnostic {
	f := factsOf(s)
	if f.unread() != "" {
		return nil
	}
	return slices.Concat(ruleDiagnostics(f), conversionDiagnostics(f))
}

// conversionDiagnostics reports the CRDs that call the operator although no InstallPlan recorded them. The CSV only
// updates the caBundle of their conversion, even if its next version needs another conversion.
func conversionDiagnostics(f *facts) []olmcore.Diagnostic {
	kept := sets.New[string]()
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		if !isConversion(w) {
			continue
		}
		for _, name := range w.ConversionCRDs {
			crd := f.crds[name]
			if crd != nil && isKept(f, crd) && f.source.notOurs(crd) != "" {
				kept.Insert(name)
			}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonConversionKept, olmcore.RefOf(f.source.CSV), "spec.webhookdefinitions",
		"no InstallPlan recorded the CRDs %s, so only the caBundle of their conversion is updated; to allow other changes, "+
			"a cluster administrator can run: %s", someOf(sets.List(kept)), allowConversionCommand(f.source.CSV, sets.List(kept)[0]))}
}

// ruleDiagnostics reports rules that a new webhook would not get, because the OperatorGroup does not select all
// namespaces.
func ruleDiagnostics(f *facts) []olmcore.Diagnostic {
	if !isRestricted(f) {
		return nil
	}
	var kept []string
	var widen, keep offer
	unrecorded := sets.New[string]()
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		r := f.reach[originOf(w)]
		if kindOf(w) == "" || r == nil {
			continue
		}
		o := existingConfiguration(f, r)
		if o == nil || r.now.why == "" && !sameRules(liveRules(o), w.Rules) {
			unrecorded.Insert(r.now.unrecorded...)
			if len(r.now.unrecorded) > 0 {
				widen.add(r)
			}
		} else if keeps := r.now.keeping(liveRules(o)); keeps != "" {
			kept = append(kept, fmt.Sprintf("%s %s (%s)", olmcore.RefOf(o).Kind, o.GetName(), keeps))
			keep.add(r)
		}
	}
	var all []olmcore.Diagnostic
	if len(kept) > 0 {
		all = append(all, olmcore.Diagnose(olmcore.Warning, ReasonRulesKept, olmcore.RefOf(f.source.CSV), "spec.webhookdefinitions",
			"webhook configurations keep rules for cluster-scoped objects until this version is replaced, although OperatorGroup %s "+
				"does not select all namespaces: %s; for new configurations, a cluster administrator can %s",
			f.source.Group.Name, someOf(kept), keep.text(f)))
	}
	if len(unrecorded) > 0 {
		all = append(all, olmcore.Diagnose(olmcore.Warning, ReasonRulesNarrowed, olmcore.RefOf(f.source.CSV), "spec.webhookdefinitions",
			"webhooks are not called for custom resources of the cluster-scoped CRDs %s: no InstallPlan recorded that they were "+
				"installed only with this version, and OperatorGroup %s does not select all namespaces; a cluster administrator can %s",
			someOf(sets.List(unrecorded)), f.source.Group.Name, widen.text(f)))
	}
	return all
}

// offer contains up to maxNamed descriptions that a cluster administrator can allow.
type offer struct {
	hashes sets.Set[string]
	rules  []string
}

func (o *offer) add(r *reach) {
	if len(o.rules) < maxNamed {
		o.hashes = o.hashes.Union(sets.New(r.hash))
		o.rules = append(o.rules, describedRules(r.description))
	}
}

// text returns the advice for a cluster administrator: the rules that the command allows, and the command.
func (o *offer) text(f *facts) string {
	return fmt.Sprintf("allow all rules of the webhooks, %s, with: %s", strings.Join(o.rules, "; "), allowCommand(f, o.hashes))
}

// describedRules returns all rules of a description in one line, so that an administrator who allows the description
// misses none. A tenant may have written the rules, so each is quoted.
func describedRules(w *description) string {
	var texts []string
	for i := range w.Rules {
		r := &w.Rules[i]
		text := fmt.Sprintf("%s of API groups %s", strings.Join(r.Resources, ","), strings.Join(r.APIGroups, ","))
		texts = append(texts, fmt.Sprintf("%q", text))
	}
	text := strings.Join(texts, "; ")
	if len(text) > maxLength {
		return strings.ToValidUTF8(text[:maxLength], "") + " ... (cut here; read all rules in spec.webhookdefinitions)"
	}
	return text
}

// keeping returns the rules of a configuration that match objects outside the namespaces of its OperatorGroup, and what
// would happen to them in a new configuration. It is empty if a new configuration would match the same objects.
func (j judged) keeping(live []rule) string {
	next := "get the scope Namespaced"
	if j.why != "" {
		next = "be refused"
	}
	var texts []string
	for i := range live {
		if r := &live[i]; mayReachMore(r) {
			texts = append(texts, fmt.Sprintf("%s of API groups %q", someOf(r.Resources), someOf(r.APIGroups)))
		}
	}
	if len(texts) == 0 || !j.mayReachClusterScoped {
		return ""
	}
	return fmt.Sprintf("%s; for a new configuration such rules would %s", someOf(texts), next)
}

// A message names at most maxNamed resources or configurations, and maxLength bytes of each.
const (
	maxNamed  = 5
	maxLength = 1024
)

// someOf returns the first names of a list for a message, and the number of the others.
func someOf(names []string) string {
	short := make([]string, 0, maxNamed)
	for _, name := range names[:min(len(names), maxNamed)] {
		if len(name) > maxLength {
			name = strings.ToValidUTF8(name[:maxLength], "") + "..."
		}
		short = append(short, name)
	}
	if extra := len(names) - len(short); extra > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(short, ", "), extra)
	}
	return strings.Join(short, ", ")
}
