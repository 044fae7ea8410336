// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/olmcore"
)

// whyPlan says where an InstallPlan stands: what its Subscriptions say of it, else what it says itself.
func whyPlan(p *v1alpha1.InstallPlan, subs []report.Subscription) answer {
	phase := cmp.Or(p.Status.Phase, v1alpha1.InstallPlanPhaseNone)
	self := report.ObjectOf(olmcore.RefOf(p))
	a := answer{what: "InstallPlan " + p.Namespace + "/" + p.Name + ": " + strings.Join(p.Spec.ClusterServiceVersionNames, ", "), words: planWords[phase]}
	a.Report = report.Report{Phase: cmp.Or(string(phase), report.Unknown), Object: self, Message: p.Status.Message, Since: report.At(p.CreationTimestamp.Time)}
	for _, c := range p.Status.Conditions {
		if c.Type == v1alpha1.InstallPlanInstalled && c.LastTransitionTime != nil {
			a.Since = report.At(c.LastTransitionTime.Time)
			if c.Status != corev1.ConditionTrue {
				a.Reason, a.Message = string(c.Reason), cmp.Or(c.Message, a.Message)
			}
		}
	}
	if phase == v1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved {
		a.Reason, a.Advice = string(phase), "Review the InstallPlan, then approve it."
	}
	return a.from(self, subs)
}

var planWords = map[v1alpha1.InstallPlanPhase]string{
	v1alpha1.InstallPlanPhaseNone:             "it was not looked at yet",
	v1alpha1.InstallPlanPhasePlanning:         "its steps are being prepared",
	v1alpha1.InstallPlanPhaseRequiresApproval: "a person has to approve it",
	v1alpha1.InstallPlanPhaseInstalling:       "its objects are being created",
	v1alpha1.InstallPlanPhaseComplete:         "all its objects were created",
	v1alpha1.InstallPlanPhaseFailed:           "its objects could not be created",
}

// whyCSV says where a ClusterServiceVersion stands.
func whyCSV(c *v1alpha1.ClusterServiceVersion, subs []report.Subscription) answer {
	self := report.ObjectOf(olmcore.RefOf(c))
	a := answer{what: "ClusterServiceVersion " + c.Namespace + "/" + c.Name, words: csvWords[c.Status.Phase]}
	a.Report = report.Report{Phase: cmp.Or(string(c.Status.Phase), report.Unknown), Reason: string(c.Status.Reason), Message: c.Status.Message, Object: self}
	if t := c.Status.LastTransitionTime; t != nil {
		a.Since = report.At(t.Time)
	}
	if c.IsCopied() {
		a.words = "a copy: the operator runs in namespace " + c.Labels[v1alpha1.CopiedLabelKey]
	}
	if c.Status.Phase == v1alpha1.CSVPhaseSucceeded {
		return a
	}
	return a.from(self, subs)
}

var csvWords = map[v1alpha1.ClusterServiceVersionPhase]string{
	v1alpha1.CSVPhaseNone:         "it was not looked at yet",
	v1alpha1.CSVPhasePending:      "it waits for what it requires",
	v1alpha1.CSVPhaseInstallReady: "all that it requires is there, and its Deployments are about to be created",
	v1alpha1.CSVPhaseInstalling:   "its Deployments were created and are not ready yet",
	v1alpha1.CSVPhaseSucceeded:    "the operator runs",
	v1alpha1.CSVPhaseFailed:       "the operator does not run",
	v1alpha1.CSVPhaseReplacing:    "a newer version replaces it",
	v1alpha1.CSVPhaseDeleting:     "it is being removed, as a newer version runs",
}

// from takes what a Subscription says that the object blocks, or something that belongs to it does.
func (a answer) from(self *report.Object, subs []report.Subscription) answer {
	i := slices.IndexFunc(subs, func(s report.Subscription) bool { return !s.Healthy() && s.Object != nil })
	if i < 0 {
		return a
	}
	s := subs[i].Report
	belongs := *s.Object == *self || self.Kind == v1alpha1.ClusterServiceVersionKind && slices.Contains([]string{"Deployment", "Pod"}, s.Object.Kind)
	if belongs {
		a.Reason, a.Message, a.Object, a.Since, a.Advice = s.Reason, s.Message, s.Object, s.Since, cmp.Or(s.Advice, a.Advice)
	}
	return a
}

// whyCatalog says whether a CatalogSource serves.
func whyCatalog(c *v1alpha1.CatalogSource) answer {
	a := answer{what: "CatalogSource " + c.Namespace + "/" + c.Name}
	a.Report = report.Report{Phase: report.Unknown, Reason: string(c.Status.Reason), Message: c.Status.Message, Object: report.ObjectOf(olmcore.RefOf(c))}
	a.words = "its status does not say whether its registry serves"
	if connection := c.Status.GRPCConnectionState; connection != nil {
		a.Phase, a.Since = cmp.Or(connection.LastObservedState, report.Unknown), report.At(connection.LastConnectTime.Time)
		a.words = "its registry at " + connection.Address + " serves"
		if !a.Healthy() {
			a.words = "its registry at " + connection.Address + " does not serve"
			a.Advice = "Look at the Pods of the catalog: kubectl get pods -n " + c.Namespace + " -l olm.catalogSource=" + c.Name
		}
	}
	return a
}
