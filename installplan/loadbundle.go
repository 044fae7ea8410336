// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/olmcore"
)

// What the tool that unpacks bundles writes on a ConfigMap.
const (
	annotationSourceImage     = "olm.sourceImage"
	annotationContentEncoding = "olm.contentEncoding"
	encodingGzip              = "gzip+base64"
)

// maxBundleBytes bounds the files of a bundle together once they are inflated,
// maxInflatedBytes those of all bundles that a plan refers to.
const (
	maxBundleBytes   = 64 << 20
	maxInflatedBytes = 256 << 20
)

// LoadBundle reads the bundle that was unpacked into a ConfigMap: Image is the
// image that it says it comes from, Objects are its manifests in the order of
// their keys, as olmcore.Decode types them. Values that are no manifest are left
// out, as is all but the first document of a value; a Diagnostic says so where
// something may be lost, names keys that are spelt in another case than the fields
// they count for, and says where there is more than one ClusterServiceVersion.
// Properties stay empty: they are not in the ConfigMap. An error that is no
// *olmcore.InputError says that the content cannot be decoded.
//
// Source: operator-registry pkg/configmap, BundleLoader.
// Differs: what is left out is reported; the size of a file is bounded.
func LoadBundle(cm *corev1.ConfigMap) (olmcore.Bundle, []olmcore.Diagnostic, error) {
	if cm == nil {
		return olmcore.Bundle{}, nil, &olmcore.InputError{Field: "ConfigMap", Problem: "is nil"}
	}
	files, err := filesOf(cm)
	if err != nil {
		return olmcore.Bundle{}, nil, err
	}
	bundle, found := decodeFiles(cm, files)
	return bundle, found, nil
}

// decodeFiles returns the manifests among the files of a ConfigMap.
func decodeFiles(cm *corev1.ConfigMap, files map[string][]byte) (olmcore.Bundle, []olmcore.Diagnostic) {
	bundle := olmcore.Bundle{Image: cm.Annotations[annotationSourceImage]}
	var found []olmcore.Diagnostic
	report := func(reason, format string, args ...any) {
		found = append(found, olmcore.Diagnostic{Severity: olmcore.Warning, Reason: reason,
			Message: fmt.Sprintf(format, args...), Target: olmcore.RefOf(cm).Unversioned(), Path: "data"})
	}
	versions := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		object, keys, extra, err := decodeFile(files[name])
		if err != nil {
			if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json") {
				report(ReasonManifestSkipped, "%s is no manifest: %s", name, clip(err.Error()))
			}
			continue
		}
		if extra {
			report(ReasonExtraDocumentsIgnored, "%s holds more than one document", name)
		}
		for _, key := range keys {
			report(ReasonKeyCase, "%s: %s", name, key)
		}
		if object == nil {
			continue
		}
		if olmcore.GVKOf(object).Kind == kindCSV {
			versions++
		}
		bundle.Objects = append(bundle.Objects, object)
	}
	if versions > 1 {
		report(ReasonBundleInvalid, "it holds %d ClusterServiceVersions", versions)
	}
	return bundle, found
}

// decodeFile returns the object that a file describes, nil when the file is well
// formed and describes none, and its keys that are spelt in another case.
func decodeFile(data []byte) (object olmcore.Object, keys []olmcore.KeyCase, extra bool, err error) {
	first, extra, err := firstDocument(string(data))
	if err != nil {
		return nil, nil, false, err
	}
	var values map[string]any
	if err := utiljson.Unmarshal(first, &values); err != nil {
		return nil, nil, false, err
	}
	id, err := identityOf(values)
	if err != nil {
		return nil, nil, false, err
	}
	if id.Kind == "" {
		return nil, nil, extra, nil
	}
	renamed, err := setIdentity(values, id)
	if err != nil {
		return nil, nil, extra, err
	}
	if first, err = json.Marshal(values); err != nil {
		return nil, nil, extra, err
	}
	object, keys, err = olmcore.DecodeKeys(first)
	if csv, ok := object.(*v1alpha1.ClusterServiceVersion); ok && id.APIVersion == "" {
		csv.APIVersion = "" // which StepsFromBundle refuses, as OLM does
	}
	return object, append(renamed, keys...), extra, err
}

// identityOf reads the identity of a manifest; keys in any case count.
func identityOf(values map[string]any) (id identity, err error) {
	own := map[string]any{}
	for key, value := range values {
		for _, field := range [...]string{"apiVersion", "kind", "metadata"} {
			if strings.EqualFold(key, field) {
				own[key] = value
			}
		}
	}
	data, err := json.Marshal(own)
	if err != nil {
		return id, err
	}
	return id, json.Unmarshal(data, &id)
}

// setIdentity gives a manifest apiVersion and kind as they are read: an apiVersion that
// is missing, or lacks the group of a ClusterServiceVersion, follows from the kind where
// steps of that kind are known. The error says that it does not.
func setIdentity(values map[string]any, id identity) (keys []olmcore.KeyCase, err error) {
	kind, known := knownKinds[id.Kind]
	if known && (id.APIVersion == "" || id.Kind == kindCSV && !strings.Contains(id.APIVersion, "/")) {
		id.APIVersion = kind.gvk.GroupVersion().String()
	}
	if id.APIVersion == "" {
		return nil, fmt.Errorf("%s has no apiVersion", id.Kind)
	}
	if values["apiVersion"] == id.APIVersion && values["kind"] == id.Kind {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		for _, field := range [...]string{"apiVersion", "kind"} {
			if key != field && strings.EqualFold(key, field) {
				keys = append(keys, olmcore.KeyCase{Path: key, Field: field})
				delete(values, key)
			}
		}
	}
	values["apiVersion"], values["kind"] = id.APIVersion, id.Kind
	return keys, nil
}

// filesOf returns the decoded values of a ConfigMap.
func filesOf(cm *corev1.ConfigMap) (map[string][]byte, error) {
	files := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for name, text := range cm.Data {
		files[name] = []byte(text)
	}
	left := int64(maxBundleBytes)
	for _, name := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		data := cm.BinaryData[name]
		if cm.Annotations[annotationContentEncoding] == encodingGzip {
			var err error
			if data, err = inflate(data, left); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			left -= int64(len(data))
		}
		files[name] = data
	}
	return files, nil
}

func sizeOf(files map[string][]byte) (size int) {
	for _, data := range files {
		size += len(data)
	}
	return size
}

func inflate(data []byte, limit int64) ([]byte, error) {
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(out)) > limit {
		err = errors.New("it is too large")
	}
	return out, err
}

// digestOf identifies what was unpacked, whatever its encoding.
func digestOf(files map[string][]byte) string {
	sum := sha256.New()
	put := func(data []byte) {
		_ = binary.Write(sum, binary.BigEndian, uint64(len(data)))
		sum.Write(data)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		put([]byte(name))
		put(files[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// bundleContent is what a ConfigMap holds.
type bundleContent struct {
	bundle olmcore.Bundle
	found  []olmcore.Diagnostic
	digest string
	err    error
}

func contentOf(cm *corev1.ConfigMap, files map[string][]byte) bundleContent {
	c := bundleContent{digest: digestOf(files)}
	c.bundle, c.found = decodeFiles(cm, files)
	return c
}

// loadComplete reads a ConfigMap that holds the whole bundle of an image; ok is false
// for every other. Its content is written in one update, with the name of the image.
func loadComplete(cm *corev1.ConfigMap, image string) (content bundleContent, ok bool) {
	if cm == nil || cm.DeletionTimestamp != nil || cm.Annotations[annotationSourceImage] != image {
		return content, false
	}
	files, err := filesOf(cm)
	if err != nil {
		return content, false
	}
	content = contentOf(cm, files)
	return content, lastCSV(content.bundle) != ""
}
