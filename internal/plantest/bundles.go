// SPDX-License-Identifier: Apache-2.0

package plantest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// BundleImage is an image, BundleName the name of what it is unpacked into.
const BundleImage = "quay.io/operatorhubio/etcd:v0.9.4"

// BundleName is the name of all objects that unpack bundleImage.
const BundleName = "fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b5916672ca0"

// UnpackedBundle is a ConfigMap that a bundle was unpacked into.
func UnpackedBundle(age time.Duration) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: Meta(BundleName)}
	cm.CreationTimestamp = *Ago(age)
	cm.Labels = map[string]string{"olm.managed": "true"}
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "cool", UID: "uid-cool"}}
	return cm
}

// Reference is a manifest that refers to UnpackedBundle.
func Reference() string {
	return `{"kind":"ConfigMap","name":"` + BundleName + `","namespace":"` + NS + `","catalogSourceName":"cool","catalogSourceNamespace":"` + NS + `","replaces":"","properties":""}`
}

// Images are those that unpack others.
var Images = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}

// Lookup is the lookup of the image of etcd.v1, as it is before anything is unpacked.
func Lookup(require.TestingT) v1alpha1.BundleLookup {
	at := metav1.NewTime(Noon.Add(-time.Minute))
	return v1alpha1.BundleLookup{
		Path: BundleImage, Identifier: "etcd.v1", Properties: "{}", CatalogSourceRef: &corev1.ObjectReference{Namespace: "olm", Name: "cool"},
		Conditions: []v1alpha1.BundleLookupCondition{
			{Type: "BundleLookupNotPersisted", Status: corev1.ConditionTrue, Reason: "BundleNotUnpacked",
				Message: "bundle contents have not yet been persisted to installplan status", LastTransitionTime: &at},
			{Type: v1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: "JobNotStarted",
				Message: "unpack job not yet started", LastTransitionTime: &at},
		},
	}
}

// InOLM is the metadata of an object in namespace olm.
func InOLM(name string) metav1.ObjectMeta {
	m := Meta(name)
	m.Namespace = "olm"
	return m
}

// EtcdCSV is the manifest of a bundle.
const EtcdCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: etcd.v1}
spec: {install: {strategy: deployment}}
`

// Filled is the ConfigMap of BundleImage with files.
func Filled(files map[string]string) *corev1.ConfigMap {
	cm := UnpackedBundle(time.Hour)
	cm.Namespace = "olm"
	cm.Annotations = map[string]string{"olm.sourceImage": BundleImage}
	cm.Data = files
	return cm
}

// Zipped is a file as the tool that unpacks writes it.
func Zipped(t testing.TB, text string) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return []byte(base64.StdEncoding.EncodeToString(buf.Bytes()))
}

// ImageOf turns an operator with inline objects into one with an image, and returns the ConfigMap that the image is
// unpacked into.
func ImageOf(t testing.TB, o olmcore.Operator) (olmcore.Operator, *corev1.ConfigMap) {
	cm := Filled(nil)
	cm.OwnerReferences = nil // no catalog in these worlds
	cm.Annotations["olm.contentEncoding"] = "gzip+base64"
	cm.BinaryData = map[string][]byte{}
	for i, object := range o.Bundle.Objects {
		values, err := olmcore.ToMap(object)
		require.NoError(t, err)
		data, err := json.Marshal(values)
		require.NoError(t, err)
		cm.BinaryData[fmt.Sprintf("%03d.json", i)] = Zipped(t, string(data))
	}
	o.Bundle.Image, o.Bundle.Objects = BundleImage, nil
	o.Bundle.Properties = []olmcore.Property{{Type: "olm.package", Value: json.RawMessage(`{"packageName":"x"}`)}}
	return o, cm
}

// ConditionsOf are the conditions of a lookup that are True.
func ConditionsOf(l v1alpha1.BundleLookup) []string {
	var out []string
	for _, c := range l.Conditions {
		if c.Type != "BundleLookupNotPersisted" {
			out = append(out, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(string(c.Type), "BundleLookup"), c.Reason, c.Message))
		}
	}
	return out
}
