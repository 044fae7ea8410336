// SPDX-License-Identifier: Apache-2.0

// Package bundle reads the content of unpacked bundles, creates the steps that install a bundle, and parses the
// manifests of these steps. It also finds the unpacked bundles that InstallPlans need.
package bundle

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

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// AnnotationSourceImage is an annotation of an unpacked bundle. Its value is the image of the bundle.
const AnnotationSourceImage = "olm.sourceImage"

// What the tool that unpacks bundles writes on a ConfigMap besides.
const (
	annotationContentEncoding = "olm.contentEncoding"
	encodingGzip              = "gzip+base64"
)

// maxBytes limits the size of all decompressed files of a bundle together.
const maxBytes = 64 << 20

// Files contains the uncompressed files of an unpacked bundle, by name.
type Files map[string][]byte

// FilesOf returns the decompressed files in the ConfigMap of an unpacked bundle. It returns an error if a file cannot
// be decompressed, or if the files are too large.
func FilesOf(cm *corev1.ConfigMap) (Files, error) {
	files := make(Files, len(cm.Data)+len(cm.BinaryData))
	for name, text := range cm.Data {
		files[name] = []byte(text)
	}
	left := int64(maxBytes)
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

// Size returns the size of all files in bytes.
func (f Files) Size() (size int) {
	for _, data := range f {
		size += len(data)
	}
	return size
}

// digest identifies the files, whatever their encoding.
func (f Files) digest() string {
	sum := sha256.New()
	put := func(data []byte) {
		_ = binary.Write(sum, binary.BigEndian, uint64(len(data))) // a hash never returns an error
		sum.Write(data)
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		put([]byte(name))
		put(f[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Content is the parsed content of an unpacked bundle.
type Content struct {
	Bundle olmcore.Bundle
	// Digest is a digest of the uncompressed files.
	Digest string
	// Found contains the diagnostics about ignored files and other problems.
	Found []olmcore.Diagnostic
}

// ContentOf returns the objects in the files of a ConfigMap, in the order of the file names. Files that are not
// manifests are ignored. Only the first document of a file is read.
//
// Source: operator-registry pkg/configmap, BundleLoader.
// Differs: ContentOf reports ignored files in diagnostics. FilesOf limits the size of the files, and OLM does not.
func ContentOf(cm *corev1.ConfigMap, files Files) Content {
	c := Content{Bundle: olmcore.Bundle{Image: cm.Annotations[AnnotationSourceImage]}, Digest: files.digest()}
	say := func(reason, format string, args ...any) {
		c.Found = append(c.Found, olmcore.Diagnose(olmcore.Warning, reason, olmcore.RefOf(cm), "data", format, args...))
	}
	versions := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		object, keys, extra, err := decodeOne(files[name])
		switch {
		case err == nil:
		case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"), strings.HasSuffix(name, ".json"):
			say(reasons.ManifestSkipped, "%s is not a manifest: %s", name, printable.Clip(err.Error()))
			continue
		default:
			continue
		}
		if extra {
			say(reasons.ExtraDocumentsIgnored, "%s contains more than one document", name)
		}
		for _, key := range keys {
			say(reasons.KeyCase, "%s: %s", name, key)
		}
		if object == nil {
			continue
		}
		c.Bundle.Objects = append(c.Bundle.Objects, object)
		if olmcore.GVKOf(object).Kind == kinds.CSV {
			versions++
		}
	}
	if versions > 1 {
		say(reasons.BundleInvalid, "it contains %d ClusterServiceVersions", versions)
	}
	return c
}

// Version returns the name of the last ClusterServiceVersion in the bundle, or an empty string if there is none.
func (c Content) Version() (name string) {
	for _, o := range c.Bundle.Objects {
		if olmcore.GVKOf(o).Kind == kinds.CSV {
			name = o.GetName()
		}
	}
	return name
}

// Complete returns the content of a ConfigMap that contains the whole bundle of an image. ok is false for any other
// ConfigMap, and for nil. The unpacker writes the content and the image in one update, so the content is never partial.
func Complete(cm *corev1.ConfigMap, image string) (content Content, ok bool) {
	if cm == nil || cm.DeletionTimestamp != nil || cm.Annotations[AnnotationSourceImage] != image {
		return content, false
	}
	files, err := FilesOf(cm)
	if err != nil {
		return content, false
	}
	content = ContentOf(cm, files)
	return content, content.Version() != ""
}

// Incomplete returns the first problem that can prevent the ClusterServiceVersion of an unpacked bundle from being
// read. Either the files cannot be decompressed, or a file that mentions ClusterServiceVersion cannot be parsed or
// contains several documents. Incomplete returns an empty string if there is no such problem, or if cm is nil.
func Incomplete(cm *corev1.ConfigMap) string {
	if cm == nil {
		return ""
	}
	files, err := FilesOf(cm)
	if err != nil {
		return printable.Clip(err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !bytes.Contains(files[name], []byte(kinds.CSV)) {
			continue
		}
		switch _, _, extra, err := decodeOne(files[name]); {
		case err != nil:
			return printable.Clip(fmt.Sprintf("%s: %s", name, err))
		case extra:
			return name + " contains more than one document, and only the first one is read"
		}
	}
	return ""
}

// decodeOne returns the object in a file of a bundle, the keys with another case, and whether more documents follow.
// The object is nil if the file is well formed and contains none.
func decodeOne(data []byte) (object olmcore.Object, keys []decode.KeyCase, extra bool, err error) {
	first, extra, err := FirstDocument(string(data))
	if err != nil {
		return nil, nil, false, err
	}
	var values map[string]any
	if err := utiljson.Unmarshal(first, &values); err != nil {
		return nil, nil, false, err
	}
	id, err := identityOf(values)
	if err != nil || id.Kind == "" {
		return nil, nil, extra, err
	}
	renamed, err := setIdentity(values, id)
	if err != nil {
		return nil, nil, false, err
	}
	if first, err = json.Marshal(values); err != nil {
		return nil, nil, false, err
	}
	object, keys, err = decode.DecodeKeys(first)
	keys = slices.DeleteFunc(keys, func(k decode.KeyCase) bool { return k.Misspelt }) // OLM ignores them without a report
	csv, ok := object.(*v1alpha1.ClusterServiceVersion)
	if ok && id.APIVersion == "" {
		csv.APIVersion = "" // Steps refuses it, as OLM does
	}
	return object, append(renamed, keys...), extra, err
}

// identityOf returns the identity in a manifest. Keys may have any case. If several keys differ only in case, the last
// one is used.
func identityOf(values map[string]any) (id Identity, err error) {
	own := maps.Clone(values)
	maps.DeleteFunc(own, func(key string, _ any) bool {
		return !strings.EqualFold(key, "apiVersion") && !strings.EqualFold(key, "kind") && !strings.EqualFold(key, "metadata")
	})
	data, err := json.Marshal(own)
	if err != nil {
		return id, err
	}
	return id, json.Unmarshal(data, &id)
}

// setIdentity gives a manifest apiVersion and kind as they are read, see apiVersionOf. The error says that there is no
// apiVersion.
func setIdentity(values map[string]any, id Identity) (keys []decode.KeyCase, err error) {
	id.APIVersion = apiVersionOf(id.APIVersion, id.Kind)
	if id.APIVersion == "" {
		return nil, fmt.Errorf("%s has no apiVersion", id.Kind)
	}
	if values["apiVersion"] == id.APIVersion && values["kind"] == id.Kind {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		for _, field := range [...]string{"apiVersion", "kind"} {
			if key != field && strings.EqualFold(key, field) {
				keys = append(keys, decode.KeyCase{Path: key, Field: field})
				delete(values, key)
			}
		}
	}
	values["apiVersion"], values["kind"] = id.APIVersion, id.Kind
	return keys, nil
}

// apiVersionOf returns the apiVersion of a manifest. If the manifest names none, or no group, and steps of its kind are
// known, the apiVersion follows from the kind. A CustomResourceDefinition keeps its version. That of a
// ClusterServiceVersion always follows: OLM recognizes one by its kind.
func apiVersionOf(apiVersion, kind string) string {
	known, ok := kinds.Known[kind]
	switch {
	case kind == kinds.CSV:
		return known.GVK.GroupVersion().String()
	case !ok || strings.Contains(apiVersion, "/") || known.GVK.Group == "" && apiVersion != "":
		return apiVersion
	case kind == kinds.CRD && apiVersion != "":
		return known.GVK.Group + "/" + apiVersion
	}
	return known.GVK.GroupVersion().String()
}
