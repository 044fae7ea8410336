// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// knowsContent reports whether a Pod says what it was made for, as those that are made
// here do.
func (v *view) knowsContent(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[v.set.prefix+keyConfigMapHash]
	return ok
}

// sameContent reports whether a Pod was made for what the ConfigMap holds. One that
// OLM made says only which version it was, and with AdoptUserConfigMap the version
// counts for all.
func (v *view) sameContent(pod *corev1.Pod) bool {
	cm := v.configMap()
	if cm == nil || v.mode != modeConfigMap {
		return true
	}
	if v.knowsContent(pod) && (!v.in.Config.AdoptUserConfigMap || v.needsAdoption()) {
		return pod.Annotations[v.set.prefix+keyConfigMapHash] == v.contentHash()
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

// needsAdoption reports whether the user's ConfigMap is to become a dependant of the
// CatalogSource, as OLM makes it one.
func (v *view) needsAdoption() bool {
	cm := v.configMap()
	if !v.in.Config.AdoptUserConfigMap || v.mode != modeConfigMap || cm == nil || cm.DeletionTimestamp != nil {
		return false
	}
	_, labelled := cm.Labels[olmcore.LabelManaged]
	return !labelled || !owns(v.cs.UID, cm.OwnerReferences)
}

// adoptionAction gives the ConfigMap OLM's label and an owner.
func (v *view) adoptionAction() olmcore.Action {
	if !v.needsAdoption() {
		return nil
	}
	cm := v.configMap()
	after := cm.DeepCopy()
	if _, labelled := cm.Labels[olmcore.LabelManaged]; !labelled {
		after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{olmcore.LabelManaged: "false"})
	}
	if !owns(v.cs.UID, cm.OwnerReferences) {
		owner := olmcore.OwnerReferenceTo(v.in.CatalogSource)
		after.OwnerReferences, _ = olmcore.AddOwnerReferences(after.OwnerReferences, []metav1.OwnerReference{owner})
	}
	return olmcore.UpdateOf(cm, after, olmcore.Cause{Reason: ReasonConfigMapAdopted, Message: "the catalog is made from the config map"})
}
