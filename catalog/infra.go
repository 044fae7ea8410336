// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/olmcore"
)

// claim is whose an object is.
type claim int

const (
	// claimOwn: it has an owner reference to the CatalogSource.
	claimOwn claim = iota
	// claimLost: it was made for a CatalogSource of this name, or for OLM, and has
	// no other owner.
	claimLost
	// claimForeign: it is somebody else's and must not be touched.
	claimForeign
)

func (v *view) claimOf(o *metav1.ObjectMeta) claim {
	if owns(v.cs.UID, o.OwnerReferences) {
		return claimOwn
	}
	if len(o.OwnerReferences) == 0 {
		if o.Labels[olmcore.LabelManaged] == "true" {
			return claimLost
		}
		return claimForeign
	}
	for i := range o.OwnerReferences {
		ref := &o.OwnerReferences[i]
		if ref.Kind != v1alpha1.CatalogSourceKind || ref.Name != v.cs.Name || !strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/") {
			return claimForeign
		}
	}
	return claimLost
}

// owns is olmcore.OwnedBy for references that are at hand.
func owns(uid types.UID, refs []metav1.OwnerReference) bool {
	for i := range refs {
		if refs[i].UID == uid && uid != "" {
			return true
		}
	}
	return false
}

const (
	policyServer = iota
	policyUnpack
)

func policySuffix(which int) string {
	if which == policyServer {
		return "-grpc-server"
	}
	return "-unpack-bundles"
}

func policyName(name string, which int) string { return name + policySuffix(which) }

// findObjects finds the objects with the names that the catalog uses.
func (v *view) findObjects() {
	in, name := v.in, v.cs.Name
	v.serviceAt, v.accountAt, v.otherAccountAt, v.policyAt = -1, -1, -1, [2]int{-1, -1}
	for i, o := range in.Services {
		if o.Namespace == v.cs.Namespace && dashedEqual(o.Name, name) {
			v.serviceAt = i
		}
	}
	for i, o := range in.ServiceAccounts {
		if o.Namespace != v.cs.Namespace {
			continue
		}
		plain, server := o.Name == name, suffixed(o.Name, name, accountSuffix)
		switch {
		case plain && !fromConfigMap(v.cs), server && fromConfigMap(v.cs):
			v.accountAt = i
		case plain, server:
			v.otherAccountAt = i
		}
	}
	for i, o := range in.NetworkPolicies.Items {
		for which := range v.policyAt {
			if o.Namespace == v.cs.Namespace && len(o.Name) > len(name) && o.Name[:len(name)] == name && o.Name[len(name):] == policySuffix(which) {
				v.policyAt[which] = i
			}
		}
	}
	if o := v.account(); o != nil {
		// A ServiceAccount without owner may be anybody's, whatever its labels say.
		v.accountShared = v.claimOf(&o.ObjectMeta) == claimForeign || len(o.OwnerReferences) == 0
	}
	if o := v.service(); o != nil && v.claimOf(&o.ObjectMeta) == claimForeign {
		v.taken = o.Name
	}
	for which := range v.policyAt {
		if o := v.policy(which); o != nil && v.taken == "" && v.claimOf(&o.ObjectMeta) == claimForeign {
			v.taken = o.Name
		}
	}
	v.findTaken()
}

// findTaken looks for other objects in the way.
func (v *view) findTaken() {
	take := func(o *metav1.ObjectMeta) {
		if v.taken == "" && v.claimOf(o) == claimForeign {
			v.taken = o.Name
		}
	}
	if fromConfigMap(v.cs) {
		if o := v.role(); o != nil {
			take(&o.ObjectMeta)
		}
		if o := v.roleBinding(); o != nil {
			take(&o.ObjectMeta)
		}
	}
	if o := v.budget(); o != nil && v.set.replicas >= 2 && !v.in.Config.NoPodDisruptionBudget {
		take(&o.ObjectMeta)
	}
}

func (v *view) service() *corev1.Service {
	if v.serviceAt < 0 {
		return nil
	}
	return v.in.Services[v.serviceAt]
}

func (v *view) account() *corev1.ServiceAccount {
	if v.accountAt < 0 {
		return nil
	}
	return v.in.ServiceAccounts[v.accountAt]
}

func (v *view) policy(which int) *networkingv1.NetworkPolicy {
	if v.policyAt[which] < 0 {
		return nil
	}
	return v.in.NetworkPolicies.Items[v.policyAt[which]]
}

// dashedEqual reports whether have is serviceName(name).
func dashedEqual(have, name string) bool {
	if len(have) != len(name) {
		return false
	}
	for i := range len(name) {
		if have[i] != name[i] && (name[i] != '.' || have[i] != '-') {
			return false
		}
	}
	return true
}

// infraActions creates what is missing and repairs what differs, in place.
func (v *view) infraActions() (actions []olmcore.Action) {
	if !v.runsPods() {
		return nil
	}
	if a := v.adoptionAction(); a != nil {
		actions = append(actions, a)
	}
	if a := v.accountAction(); a != nil {
		actions = append(actions, a)
	}
	if v.mode == modeConfigMap {
		if a := v.roleAction(); a != nil {
			actions = append(actions, a)
		}
		if a := v.bindingAction(); a != nil {
			actions = append(actions, a)
		}
	}
	for which := range v.policyAt {
		if a := v.policyAction(v.policy(which), which); a != nil {
			actions = append(actions, a)
		}
	}
	if a := v.serviceAction(); a != nil {
		actions = append(actions, a)
	}
	if a := v.budgetAction(); a != nil {
		actions = append(actions, a)
	}
	return actions
}

func missing(o olmcore.Object) olmcore.Action {
	return olmcore.CreateOf(o, olmcore.Cause{Reason: ReasonObjectMissing, Message: "the catalog needs it"})
}

func differs(before, after olmcore.Object, what string) olmcore.Action {
	return olmcore.UpdateOf(before, after, olmcore.Cause{Reason: ReasonObjectDiffers, Message: what})
}

func (v *view) serviceAction() olmcore.Action {
	have := v.service()
	if have == nil {
		return missing(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Name: serviceName(v.cs.Name), Namespace: v.cs.Namespace,
				Labels:          map[string]string{labelServiceHash: v.serviceHash(), olmcore.LabelManaged: "true"},
				OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(v.in.CatalogSource)},
			},
			Spec: v.serviceSpec(),
		})
	}
	if have.DeletionTimestamp != nil || owns(v.cs.UID, have.OwnerReferences) && have.Labels[olmcore.LabelManaged] == "true" &&
		have.Labels[labelServiceHash] == v.serviceHash() && v.serviceFits(have) {
		return nil
	}
	after := have.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{labelServiceHash: v.serviceHash(), olmcore.LabelManaged: "true"})
	if !owns(v.cs.UID, have.OwnerReferences) {
		after.OwnerReferences, _ = olmcore.RepairOwnerReferences(after.OwnerReferences, []metav1.OwnerReference{olmcore.OwnerReferenceTo(v.in.CatalogSource)})
	}
	if !v.serviceFits(have) {
		want := v.serviceSpec()
		after.Spec.Ports, after.Spec.Selector = want.Ports, want.Selector
	}
	return differs(have, after, "labels, owner or spec differ")
}

func (v *view) serviceSpec() corev1.ServiceSpec {
	spec := corev1.ServiceSpec{
		Ports:    []corev1.ServicePort{{Name: grpcName, Port: grpcPort, TargetPort: intstr.FromInt32(grpcPort)}},
		Selector: servingLabels(v.cs.Name),
	}
	if fromConfigMap(v.cs) {
		delete(spec.Selector, olmcore.LabelManaged)
	}
	return spec
}

// serviceFits compares what the catalog asks for; what the API server fills in
// is its own.
func (v *view) serviceFits(s *corev1.Service) bool {
	labels := 2
	if fromConfigMap(v.cs) {
		labels = 1
	}
	if len(s.Spec.Selector) != labels || s.Spec.Selector[labelServing] != v.cs.Name || labels == 2 && s.Spec.Selector[olmcore.LabelManaged] != "true" {
		return false
	}
	if len(s.Spec.Ports) != 1 {
		return false
	}
	p := &s.Spec.Ports[0]
	return p.Name == grpcName && p.Port == grpcPort && p.TargetPort == intstr.FromInt32(grpcPort) && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP)
}

func (v *view) policyAction(have *networkingv1.NetworkPolicy, which int) olmcore.Action {
	labels := func() map[string]string { return servingLabels(v.cs.Name) }
	if have == nil && !v.in.NetworkPolicies.Complete {
		return nil
	}
	if have == nil {
		return missing(&networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{
				Name: policyName(v.cs.Name, which), Namespace: v.cs.Namespace, Labels: labels(),
				OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(v.in.CatalogSource)},
			},
			Spec: policySpec(v.cs, which),
		})
	}
	fits := policyFits(&have.Spec, v.cs, which)
	labelled := have.Labels[labelServing] == v.cs.Name && have.Labels[olmcore.LabelManaged] == "true"
	owned := owns(v.cs.UID, have.OwnerReferences)
	if have.DeletionTimestamp != nil || v.claimOf(&have.ObjectMeta) == claimForeign || fits && labelled && owned {
		return nil
	}
	after := have.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, labels())
	if !owned {
		after.OwnerReferences, _ = olmcore.RepairOwnerReferences(after.OwnerReferences, []metav1.OwnerReference{olmcore.OwnerReferenceTo(v.in.CatalogSource)})
	}
	if !fits {
		after.Spec = policySpec(v.cs, which)
	}
	return differs(have, after, "labels, owner or spec differ")
}
