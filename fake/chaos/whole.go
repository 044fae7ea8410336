// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
)

// issuer is the one of a manager. Each has other keys, and all of them fail for a while.
type issuer struct {
	*manager
	olm.Issuer
}

func (i issuer) Issue(
	ctx context.Context,
	r olmcore.Reader,
	requests []serving.Request,
	now time.Time,
) ([]serving.Issued, olmcore.Result, error) {
	if i.history.issuerFails {
		return nil, olmcore.Result{}, errors.New("the authority does not answer")
	}
	i.history.Figures.Certificates += len(requests)
	return i.Issuer.Issue(ctx, r, requests, now)
}

// checkServing requires at every step that who calls an operator trusts its Pods, unless a user changes who calls it,
// and finds its Service, unless users delete or spoil what leads there. Pods may be gone or on their way.
func checkServing(h *History) {
	if h.Spoils && !h.Serves {
		return
	}
	for _, line := range linesOf(h.Cluster.Serving().Check()) {
		isOnItsWay := h.Deletes || h.Spoils || strings.Contains(line, "no endpoints available")
		if strings.Contains(line, "x509") || !isOnItsWay {
			h.must(fmt.Errorf("what is called does not answer: %s", line))
		}
	}
}

func linesOf(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// granted are the resources that some specification asks for, or whose users' roles the library makes.
var granted = []string{
	"/configmaps", "/nodes", "/namespaces", "example.com/deltas", "example.com/alphas", "example.com/betas", "example.com/gammas", "example.com/zetas", "example.com/helms",
	"epsilon.example.com/epsilons", "ice.example.com/ices", "apiextensions.k8s.io/customresourcedefinitions", "operators.coreos.com/operatorconditions", "/pods",
}

// checkRights requires that no account may more than the specifications say, and that the attacker is bound to nothing.
func checkRights(h *History) {
	bound := func(o olmcore.Object, subjects []rbacv1.Subject) {
		for _, s := range subjects {
			if s.Namespace == attacker {
				h.must(fmt.Errorf("%s binds the attacker's account %s", olmcore.KeyOf(o), s.Name))
			}
		}
	}
	for _, o := range h.Cluster.Objects() {
		if o.GetNamespace() == attacker {
			continue
		}
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			checkRules(h, o, o.Rules)
		case *rbacv1.Role:
			checkRules(h, o, o.Rules)
		case *rbacv1.ClusterRoleBinding:
			bound(o, o.Subjects)
		case *rbacv1.RoleBinding:
			bound(o, o.Subjects)
		}
	}
}

func checkRules(h *History, o olmcore.Object, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				_, isServing := strings.CutSuffix(o.GetName(), "-service-cert")
				if !slices.Contains(granted, group+"/"+resource) && !(isServing && slices.Equal(rule.ResourceNames, []string{o.GetName()})) {
					h.must(fmt.Errorf("%s grants %s", olmcore.KeyOf(o), rule.String()))
				}
			}
		}
	}
}

// isStuckWithout reports whether what does not answer belongs to a version that could not be installed, as users
// deleted the InstallPlan that would make what it needs.
func isStuckWithout(h *History, line string) bool {
	return slices.ContainsFunc(stuck(h), func(c *v1alpha1.ClusterServiceVersion) bool {
		isCalled := func(d v1alpha1.StrategyDeploymentSpec) bool {
			return strings.Contains(line, "//"+d.Name+"-service."+c.Namespace+".svc")
		}
		return slices.ContainsFunc(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, isCalled)
	})
}

// isLeftBehind reports whether what does not answer is the conversion of a CustomResourceDefinition whose version users
// deleted for good, together with its InstallPlan. Definitions stay, as their instances do.
func isLeftBehind(h *History, line string) bool {
	name, isDefinition := strings.CutPrefix(line, "CustomResourceDefinition ")
	name, _, _ = strings.Cut(name, ":")
	isOwned := slices.ContainsFunc(listed[*v1alpha1.ClusterServiceVersion](h), func(c *v1alpha1.ClusterServiceVersion) bool {
		isIt := func(d v1alpha1.CRDDescription) bool { return d.Name == name }
		return !c.IsCopied() && slices.ContainsFunc(c.Spec.CustomResourceDefinitions.Owned, isIt)
	})
	return h.Races && h.Deletes && isDefinition && !isOwned
}

// isLeftToStuck reports whether an object is an APIService that the version before left to one that cannot be
// installed.
func isLeftToStuck(h *History, o olmcore.Object) bool {
	return slices.ContainsFunc(stuck(h), func(c *v1alpha1.ClusterServiceVersion) bool {
		isIt := func(d v1alpha1.APIServiceDescription) bool { return d.GetName() == o.GetName() }
		return c.Namespace == o.GetLabels()["olm.owner.namespace"] && slices.ContainsFunc(c.Spec.APIServiceDefinitions.Owned, isIt)
	})
}

// stuck are the versions that are not installed for want of what users deleted.
func stuck(h *History) (all []*v1alpha1.ClusterServiceVersion) {
	for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
		if h.Deletes && !c.IsCopied() && c.Status.Phase == v1alpha1.CSVPhasePending && c.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet {
			all = append(all, c)
		}
	}
	return all
}

// requireServed: in the end the API server reaches whatever it calls, and calls what the installed versions say.
func requireServed(h *History) {
	for _, line := range linesOf(h.Cluster.Serving().Check()) {
		if strings.Contains(line, "x509") || !isStuckWithout(h, line) && !isLeftBehind(h, line) {
			h.must(fmt.Errorf("what is called does not answer in the end: %s", line))
		}
	}
	for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
		if c.IsCopied() || c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
			continue
		}
		configurations := map[string]int{}
		for _, o := range h.Cluster.Objects() {
			if strings.HasSuffix(olmcore.GVKOf(o).Kind, "WebhookConfiguration") && o.GetLabels()["olm.owner"] == c.Name &&
				o.GetLabels()["olm.owner.namespace"] == c.Namespace {
				configurations[o.GetLabels()["olm.webhook-description-generate-name"]]++
			}
		}
		for _, d := range c.Spec.APIServiceDefinitions.Owned {
			a := fake.Find[*apiregistrationv1.APIService](h.Cluster, "", d.GetName())
			if a == nil || a.Labels[olmcore.LabelOwner] != c.Name || a.Labels["olm.owner.namespace"] != c.Namespace ||
				a.Status.Conditions[0].Status != apiregistrationv1.ConditionTrue {
				h.must(fmt.Errorf("%s/%s is Succeeded, and its API is not served: %+v", c.Namespace, c.Name, a))
			}
		}
		for _, w := range c.Spec.WebhookDefinitions {
			if w.Type == v1alpha1.ConversionWebhook {
				crd := fake.Find[*apiextensionsv1.CustomResourceDefinition](h.Cluster, "", w.ConversionCRDs[0])
				if crd == nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil ||
					crd.Spec.Conversion.Webhook.ClientConfig.Service.Name != w.DeploymentName+"-service" {
					h.must(fmt.Errorf("%s/%s is Succeeded, and %s is not converted by %s", c.Namespace, c.Name, w.ConversionCRDs[0], w.DeploymentName))
				}
			} else if configurations[w.GenerateName] != 1 {
				h.must(fmt.Errorf("%s/%s is Succeeded, and there are %d configurations %s", c.Namespace, c.Name, configurations[w.GenerateName], w.GenerateName))
			}
			delete(configurations, w.GenerateName)
		}
		if len(configurations) > 0 {
			h.must(fmt.Errorf("%s/%s is Succeeded, and there are configurations %v besides", c.Namespace, c.Name, configurations))
		}
	}
}

// requireCopies: in the end the copies are where their originals' groups and the OLMConfig want them, and nowhere else.
func requireCopies(h *History) {
	want, optional, disabled := map[string]bool{}, map[string]bool{}, false
	if config := fake.Find[*operatorsv1.OLMConfig](h.Cluster, "", "cluster"); config != nil {
		disabled = !config.CopiedCSVsAreEnabled()
	}
	for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
		// A version whose successor was left half installed by a user stays Replacing, and is not copied again.
		isLeft := h.Deletes && c.Status.Phase == v1alpha1.CSVPhaseReplacing
		if c.IsCopied() || c.IsUncopiable() || c.DeletionTimestamp != nil {
			continue
		}
		all := h.targets[c.Namespace] == nil
		// Such a version keeps the namespaces of its OperatorGroup that it was installed with.
		kept := strings.Split(c.Annotations["olm.targetNamespaces"], ",")
		for _, o := range h.Cluster.Objects() {
			ns, is := o.(*corev1.Namespace)
			if !is || ns.DeletionTimestamp != nil || ns.Name == c.Namespace {
				continue
			}
			key := ns.Name + "/" + c.Name + " of " + c.Namespace
			if all && !disabled || slices.Contains(h.targets[c.Namespace], ns.Name) {
				want[key], optional[key] = true, isLeft
			} else if isLeft && slices.Contains(kept, ns.Name) {
				want[key], optional[key] = true, true
			}
		}
	}
	for _, o := range h.Cluster.Objects() {
		if c, is := o.(*v1alpha1.ClusterServiceVersion); is && c.IsCopied() {
			key := c.Namespace + "/" + c.Name + " of " + c.Labels["olm.copiedFrom"]
			source := fake.Find[*v1alpha1.ClusterServiceVersion](h.Cluster, c.Labels["olm.copiedFrom"], c.Name)
			switch {
			case !want[key]:
				h.must(fmt.Errorf("there is a copy %s in the end", key))
			case source.Spec.Replaces != c.Spec.Replaces || source.Status.Phase != c.Status.Phase || c.Status.Reason != v1alpha1.CSVReasonCopied:
				h.must(fmt.Errorf("copy %s is not as its original: %+v %+v", key, c.Status, source.Status))
			}
			delete(want, key)
		}
	}
	maps.DeleteFunc(want, func(key string, _ bool) bool { return optional[key] })
	if len(want) > 0 {
		h.must(fmt.Errorf("copies are missing in the end: %v", want))
	}
}

// requireOwners requires that in the end no object outside the namespaces of OLM belongs to a version that is gone. A
// manager with a stale cache may create its roles and bindings after the cleanup. The sweep deletes them, or reports
// them if it may not delete.
func requireOwners(h *History) {
	reported := orphans(h)
	for _, o := range h.Cluster.Objects() {
		owner, labelled := olmcore.OwnerOf(o.GetLabels())
		if !labelled || owner.Kind != v1alpha1.ClusterServiceVersionKind || o.GetNamespace() == attacker ||
			o.GetNamespace() != "" && o.GetNamespace() != "kube-system" {
			continue
		}
		if c := fake.Find[*v1alpha1.ClusterServiceVersion](h.Cluster, owner.Namespace, owner.Name); c != nil && !c.IsCopied() {
			continue
		}
		h.Figures.Orphans++
		isOfRole := strings.HasPrefix(o.GetName(), owner.Name+"-") && (h.Races || o.GetLabels()[olmcore.LabelCopiedFrom] == "")
		if (h.Sweeps || !isOfRole || !reported[olmcore.KeyOf(o)]) && !isLeftToStuck(h, o) {
			h.must(fmt.Errorf("%s is of %s/%s, which is gone", olmcore.KeyOf(o), owner.Namespace, owner.Name))
		}
	}
}

// orphans are the objects that the sweep calls left behind.
func orphans(h *History) map[olmcore.Key]bool {
	in, err := sweep.Gather(context.Background(), h.Cluster, cleanup.Config{}, nil)
	h.must(err)
	in.Now = h.Cluster.Now()
	out, err := sweep.Reconcile(in)
	h.must(err)
	found := map[olmcore.Key]bool{}
	for _, d := range out.Diagnostics {
		if d.Reason == sweep.ReasonOrphaned {
			found[d.Target.Key()] = true
		}
	}
	return found
}

// requireRights: in the end the operators may where they watch what their versions ask for. If the InstallPlan was
// deleted and all that was granted was deleted, too, nothing proves the permission: then it must be reported.
func requireRights(h *History) {
	for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
		if c.IsCopied() || c.Status.Phase != v1alpha1.CSVPhaseSucceeded || len(c.Spec.InstallStrategy.StrategySpec.Permissions) == 0 {
			continue
		}
		places := []string{""}
		if targets := h.targets[c.Namespace]; targets != nil {
			places = slices.DeleteFunc(slices.Clone(targets), func(ns string) bool { return ns == c.Namespace })
		}
		for _, place := range places {
			account := types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName}
			if !mayReadConfigMaps(h, place, account) && !isNotApproved(h, c) {
				h.must(fmt.Errorf("%s/%s is Succeeded, and may not read ConfigMaps in %q", c.Namespace, c.Name, place))
			}
		}
	}
}

// isNotApproved reports whether the controllers report that nothing proves a permission of a version.
func isNotApproved(h *History, c *v1alpha1.ClusterServiceVersion) bool {
	in, err := permissions.Gather(context.Background(), h.Cluster, types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	h.must(err)
	in.Now = h.Cluster.Now()
	out, err := permissions.Reconcile(in)
	h.must(err)
	return slices.ContainsFunc(out.Diagnostics, func(d olmcore.Diagnostic) bool {
		return d.Reason == permissions.ReasonPermissionNotApproved
	})
}

func mayReadConfigMaps(h *History, place string, account types.NamespacedName) bool {
	for _, o := range h.Cluster.Objects() {
		var subjects []rbacv1.Subject
		var rules []rbacv1.PolicyRule
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects = b.Subjects
			if role := fake.Find[*rbacv1.ClusterRole](h.Cluster, "", b.RoleRef.Name); role != nil {
				rules = role.Rules
			}
		case *rbacv1.RoleBinding:
			subjects = b.Subjects
			if role := fake.Find[*rbacv1.Role](h.Cluster, b.Namespace, b.RoleRef.Name); role != nil {
				rules = role.Rules
			}
		}
		isHis := func(s rbacv1.Subject) bool { return s.Namespace == account.Namespace && s.Name == account.Name }
		reads := func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "configmaps") && len(r.ResourceNames) == 0
		}
		if o.GetNamespace() == place && slices.ContainsFunc(subjects, isHis) && slices.ContainsFunc(rules, reads) {
			return true
		}
	}
	return false
}
