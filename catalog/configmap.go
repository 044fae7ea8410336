// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// What OLM's config map server needs.
const (
	labelConfigMapVersion = "olm.configMapResourceVersion"
	configMapServerName   = "configmap-registry-server"
	configMapServer       = "configmap-server"

	accountSuffix = "-configmap-server"
	roleSuffix    = "-configmap-reader"
	bindingSuffix = "-server-configmap-reader"

	// cleanupFinalizer holds a CatalogSource until its ConfigMap is free again.
	cleanupFinalizer = "operators.coreos.com/catalogsource-cleanup"
)

func fromConfigMap(cs *v1alpha1.CatalogSource) bool {
	return cs.Spec.SourceType == v1alpha1.SourceTypeConfigmap || cs.Spec.SourceType == v1alpha1.SourceTypeInternal
}

// configMap returns the ConfigMap that the spec names, nil when it does not exist.
func (v *view) configMap() *corev1.ConfigMap {
	if cm := v.in.ConfigMap; cm != nil && cm.Name == v.cs.Spec.ConfigMap && cm.Namespace == v.cs.Namespace {
		return cm
	}
	return nil
}

// withoutExtraction returns the fields of grpcPodConfig that hold for a config map
// server.
//
// Differs: extractContent is left out; OLM makes Pods with empty image names of it,
// which API servers refuse.
func withoutExtraction(c *v1alpha1.GrpcPodConfig) *v1alpha1.GrpcPodConfig {
	if c == nil || c.ExtractContent == nil {
		return c
	}
	kept := *c
	kept.ExtractContent = nil
	return &kept
}

// serveConfigMap completes a Pod: what OLM sets after it has computed the hash.
func (v *view) serveConfigMap(pod *corev1.Pod) {
	pod.Labels[labelConfigMapVersion] = v.configMap().ResourceVersion
	pod.Annotations[v.set.prefix+keyConfigMapHash] = v.contentHash()
	pod.Spec.ServiceAccountName = v.cs.Name + accountSuffix
	pod.Spec.Containers[0].Command = []string{configMapServer, "-c", v.cs.Spec.ConfigMap, "-n", v.cs.Namespace}
}

// contentHash is a fingerprint of what the ConfigMap holds; its metadata do not
// matter.
func (v *view) contentHash() string {
	if v.hashes.content == "" {
		cm := v.configMap()
		v.hashes.content, _ = olmcore.Hash(struct {
			Name       string
			Data       map[string]string
			BinaryData map[string][]byte
		}{cm.Name, cm.Data, cm.BinaryData})
		v.hashes.fresh = true
	}
	return v.hashes.content
}

// sameContent reports whether a Pod was made for what the ConfigMap holds. One that
// OLM made says only which version it was.
func (v *view) sameContent(pod *corev1.Pod) bool {
	cm := v.configMap()
	if cm == nil || v.mode != modeConfigMap {
		return true
	}
	if hash, ok := pod.Annotations[v.set.prefix+keyConfigMapHash]; ok {
		return hash == v.contentHash()
	}
	if pod.Labels[labelConfigMapVersion] != cm.ResourceVersion || len(pod.Spec.Containers) != 1 {
		return false
	}
	command := pod.Spec.Containers[0].Command
	i := slices.Index(command, "-c")
	return i >= 0 && i+1 < len(command) && command[i+1] == cm.Name
}

// wantedReference is status.configMapReference; the recorded one itself when it is
// right.
func (v *view) wantedReference() *v1alpha1.ConfigMapResourceReference {
	have, cm := v.cs.Status.ConfigMapResource, v.configMap()
	if v.mode != modeConfigMap || cm == nil {
		return have
	}
	if have != nil && have.Name == cm.Name && have.Namespace == cm.Namespace && have.UID == cm.UID && have.ResourceVersion == cm.ResourceVersion {
		return have
	}
	return &v1alpha1.ConfigMapResourceReference{
		Name: cm.Name, Namespace: cm.Namespace, UID: cm.UID, ResourceVersion: cm.ResourceVersion, LastUpdateTime: olmcore.Timestamp(v.in.Now),
	}
}

// adoptionAction makes the user's ConfigMap a dependant of the CatalogSource, as
// OLM does, once a finalizer makes sure that it does not go with it.
func (v *view) adoptionAction(statusFirst bool) olmcore.Action {
	cm := v.configMap()
	if !v.in.Config.AdoptUserConfigMap || v.mode != modeConfigMap || cm == nil || cm.DeletionTimestamp != nil {
		return nil
	}
	_, labelled := cm.Labels[olmcore.LabelManaged]
	held := slices.Contains(v.cs.Finalizers, cleanupFinalizer)
	if labelled && held && owns(v.cs.UID, cm.OwnerReferences) {
		return nil
	}
	cause := olmcore.Cause{Reason: ReasonConfigMapAdopted, Message: "the catalog is made from the config map"}
	if !held {
		if statusFirst {
			return nil
		}
		cs := v.in.CatalogSource
		after := cs.DeepCopy()
		after.Finalizers = append(after.Finalizers, cleanupFinalizer)
		return olmcore.UpdateOf(cs, after, cause)
	}
	after := cm.DeepCopy()
	if !labelled {
		after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{olmcore.LabelManaged: "false"})
	}
	if !owns(v.cs.UID, cm.OwnerReferences) {
		owner := olmcore.OwnerReferenceTo(v.in.CatalogSource)
		after.OwnerReferences, _ = olmcore.AddOwnerReferences(after.OwnerReferences, []metav1.OwnerReference{owner})
	}
	return olmcore.UpdateOf(cm, after, cause)
}

// releaseActions give adopted ConfigMaps back: before the CatalogSource goes, and
// when it is made from another one. One that is being deleted needs no help. A
// controller that was behind may have adopted one after the finalizer went.
func (v *view) releaseActions(statusFirst bool) (actions []olmcore.Action) {
	cs := v.in.CatalogSource
	held := slices.Contains(cs.Finalizers, cleanupFinalizer)
	if !held && !v.in.Config.AdoptUserConfigMap {
		return nil
	}
	keep := ""
	if cs.DeletionTimestamp == nil && v.in.Config.AdoptUserConfigMap && fromConfigMap(cs) {
		keep = cs.Spec.ConfigMap
	}
	cause := olmcore.Cause{Reason: ReasonConfigMapReleased, Message: "the config map outlives the catalog"}
	adopted := slices.Clone(v.in.AdoptedConfigMaps)
	if v.in.ConfigMap != nil {
		adopted = append(adopted, v.in.ConfigMap)
	}
	adopted = slices.DeleteFunc(adopted, func(cm *corev1.ConfigMap) bool {
		return cm == nil || cm.Namespace != cs.Namespace || cm.DeletionTimestamp != nil || !owns(cs.UID, cm.OwnerReferences) || cm.Name == keep
	})
	slices.SortFunc(adopted, func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	for i, cm := range adopted {
		if i > 0 && adopted[i-1].Name == cm.Name {
			continue
		}
		after := cm.DeepCopy()
		after.OwnerReferences = withoutOwner(after.OwnerReferences, cs.UID)
		if len(after.OwnerReferences) == 0 && after.Labels[olmcore.LabelManaged] == "false" {
			delete(after.Labels, olmcore.LabelManaged)
		}
		actions = append(actions, olmcore.UpdateOf(cm, after, cause))
	}
	if len(actions) > 0 || keep != "" || statusFirst || !held {
		return actions
	}
	after := cs.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == cleanupFinalizer })
	return []olmcore.Action{olmcore.UpdateOf(cs, after, cause)}
}

func withoutOwner(refs []metav1.OwnerReference, uid types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == uid })
}
