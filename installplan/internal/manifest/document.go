// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"strings"

	"github.com/olmcore/olm/internal/yamljson"
)

// FirstDocument returns the first YAML document that holds anything, as JSON, and
// whether there is another. What is a JSON object is that document as it is.
func FirstDocument(text string) (first []byte, extra bool, err error) {
	if data := []byte(text); strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid(data) {
		return data, false, nil
	}
	for _, doc := range strings.Split("\n"+text, "\n---") {
		// What follows the dashes on their line is part of the separator.
		if _, rest, ok := strings.Cut(doc, "\n"); ok {
			doc = rest
		}
		if strings.TrimSpace(doc) == "" {
			continue
		}
		if first != nil {
			return first, true, nil
		}
		data, err := yamljson.Convert([]byte(doc), false)
		if err != nil {
			return nil, false, err
		}
		if string(data) != "null" {
			first = data
		}
	}
	if first == nil {
		return nil, false, ErrEmpty
	}
	return first, false, nil
}
