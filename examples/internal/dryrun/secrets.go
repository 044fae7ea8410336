// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// secrets are the values that Secrets of the input hold and that are no certificates. What is printed ends in logs and
// reviews, so they are left out of it, wherever a Secret has them.
type secrets map[string]bool

// NotPrinted stands for them, as a Secret's data has it: "not printed".
const NotPrinted = "bm90IHByaW50ZWQ="

func secretsOf(input *fake.Cluster) secrets {
	all := secrets{}
	for _, o := range input.Objects() {
		s, ok := o.(*corev1.Secret)
		if !ok {
			continue
		}
		for key, value := range s.Data {
			if len(value) > 0 && !isCertificate(key) {
				all[base64.StdEncoding.EncodeToString(value)] = true
			}
		}
	}
	return all
}

// isCertificate reports whether a key of a Secret holds what everybody may see.
func isCertificate(key string) bool {
	return slices.Contains([]string{"olmCAKey", "next.olmCAKey", "previous.olmCAKey"}, key) || strings.HasSuffix(key, ".crt")
}

// hide takes the values out of a Secret as JSON, or out of a merge patch of one.
func (s secrets) hide(secret map[string]any) {
	data, _ := secret["data"].(map[string]any)
	for key, value := range data {
		if text, ok := value.(string); ok && s[text] {
			data[key] = NotPrinted
		}
	}
	texts, _ := secret["stringData"].(map[string]any)
	for key := range texts {
		texts[key] = "not printed"
	}
	metadata, _ := secret["metadata"].(map[string]any)
	if annotations, ok := metadata["annotations"].(map[string]any); ok && annotations[corev1.LastAppliedConfigAnnotation] != nil {
		annotations[corev1.LastAppliedConfigAnnotation] = "not printed"
	}
}

// hideIn is hide for a record, in place.
func (s secrets) hideIn(r *olmcore.Record) error {
	if r.Target.Kind != "Secret" {
		return nil
	}
	for _, raw := range []*json.RawMessage{&r.Object, &r.Patch} {
		if len(*raw) == 0 {
			continue
		}
		var secret map[string]any
		if err := json.Unmarshal(*raw, &secret); err != nil {
			return err
		}
		s.hide(secret)
		text, err := json.Marshal(secret)
		if err != nil {
			return err
		}
		*raw = text
	}
	return nil
}
