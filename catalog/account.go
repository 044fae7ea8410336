// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// wantedPullSecrets are the entries that the ServiceAccount has, or will have:
// those of spec.secrets, and those that somebody else added.
func (v *view) wantedPullSecrets() []corev1.LocalObjectReference {
	if fromConfigMap(v.cs) {
		return nil
	}
	var have []corev1.LocalObjectReference
	before := ""
	if account := v.account(); account != nil {
		have = account.ImagePullSecrets
		if v.accountShared {
			return have
		}
		before = account.Annotations[v.set.prefix+keyPullSecrets]
	}
	wanted := have
	for name := range strings.SplitSeq(before, ",") {
		if name != "" && !slices.Contains(v.cs.Spec.Secrets, name) && hasSecret(wanted, name) {
			wanted = slices.DeleteFunc(slices.Clone(wanted), func(r corev1.LocalObjectReference) bool { return r.Name == name })
		}
	}
	for _, name := range v.cs.Spec.Secrets {
		if name != "" && !hasSecret(wanted, name) {
			wanted = append(slices.Clip(wanted), corev1.LocalObjectReference{Name: name})
		}
	}
	return wanted
}

func hasSecret(list []corev1.LocalObjectReference, name string) bool {
	for i := range list {
		if list[i].Name == name {
			return true
		}
	}
	return false
}

func (v *view) accountOwner() metav1.OwnerReference {
	owner := olmcore.OwnerReferenceTo(v.in.CatalogSource)
	if fromConfigMap(v.cs) {
		return owner
	}
	owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
	return owner
}

func (v *view) accountAction() olmcore.Action {
	have := v.account()
	if have == nil {
		name := v.cs.Name
		if fromConfigMap(v.cs) {
			name += accountSuffix
		}
		account := &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: v.cs.Namespace,
				Labels:          map[string]string{olmcore.LabelManaged: "true"},
				OwnerReferences: []metav1.OwnerReference{v.accountOwner()},
			},
			ImagePullSecrets: slices.Clone(v.pullSecrets),
		}
		if !fromConfigMap(v.cs) {
			v.recordPullSecrets(account)
		}
		return missing(account)
	}
	if have.DeletionTimestamp != nil || v.accountShared {
		return nil
	}
	labelled := have.Labels[olmcore.LabelManaged] == "true"
	owned := owns(v.cs.UID, have.OwnerReferences)
	secrets := fromConfigMap(v.cs) || slices.Equal(have.ImagePullSecrets, v.pullSecrets)
	if labelled && owned && secrets {
		return nil
	}
	after := have.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{olmcore.LabelManaged: "true"})
	if !owned {
		after.OwnerReferences, _ = olmcore.RepairOwnerReferences(after.OwnerReferences, []metav1.OwnerReference{v.accountOwner()})
	}
	if !secrets {
		after.ImagePullSecrets = slices.Clone(v.pullSecrets)
		v.recordPullSecrets(after)
	}
	return differs(have, after, "label, owner or pull secrets differ")
}

// recordPullSecrets remembers which entries are ours, so that they can go when
// they leave the spec.
func (v *view) recordPullSecrets(account *corev1.ServiceAccount) {
	var ours []string
	for _, name := range v.cs.Spec.Secrets {
		if name != "" && !slices.Contains(ours, name) {
			ours = append(ours, name)
		}
	}
	key := v.set.prefix + keyPullSecrets
	if len(ours) == 0 {
		delete(account.Annotations, key)
		return
	}
	if account.Annotations == nil {
		account.Annotations = map[string]string{}
	}
	account.Annotations[key] = strings.Join(ours, ",")
}
